/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the straggler report, word by word. */
#include "collectives/trace/straggler_text.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_verdict.h"
#include "tests/tap.h"

static const char *const hosts[] = {"n1", "n1", "node\"2", "n3"};

static const struct hvd_straggler_rank ranks[] = {
    {.last = 1, .late_us = 4, .most_late_us = 4, .waited_us = 61500000},
    {.last = 0, .late_us = 0, .most_late_us = 0, .waited_us = 62000000},
    {.last = 750, .late_us = 60000000, .most_late_us = 1500000, .waited_us = 1200},
    {.last = 200, .late_us = 999000, .most_late_us = 20000, .waited_us = 1500},
};

static struct hvd_straggler_sums make_sums(void)
{
    struct hvd_straggler_sums sums = {
        .size = 4, .compared = 1000, .even = 49, .is_complete = true, .ranks = ranks};

    sums.kinds[HVD_KIND_ALLREDUCE] = (struct hvd_straggler_kind){
        .batches = 4000, .tensors = 64400, .bytes = 4LL << 30, .run_ns = 8000000000};
    sums.kinds[HVD_KIND_BARRIER] =
        (struct hvd_straggler_kind){.batches = 8, .tensors = 8, .run_ns = 400000};
    return sums;
}

static const struct hvd_straggler_job job = {.hosts = hosts, .elapsed_us = 125000000};

typedef void (*printer)(const struct hvd_straggler_sums *sums, int most, FILE *out);

static void table(const struct hvd_straggler_sums *sums, int most, FILE *out)
{
    hvd_straggler_print(sums, &job, most, out);
}

static void json(const struct hvd_straggler_sums *sums, int most, FILE *out)
{
    (void)most;
    hvd_straggler_print_json(sums, &job, out);
}

static bool prints(printer print, const struct hvd_straggler_sums *sums, int most,
                   const char *expected)
{
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    bool is_same;

    print(sums, most, out);
    fclose(out);
    is_same = strcmp(printed, expected) == 0;
    if (!is_same) {
        fprintf(stderr, "%s", printed);
    }
    free(printed);
    return is_same;
}

static bool prints_part(printer print, const struct hvd_straggler_sums *sums,
                        const char *part)
{
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    bool is_there;

    print(sums, 16, out);
    fclose(out);
    is_there = strstr(printed, part) != NULL;
    if (!is_there) {
        fprintf(stderr, "%s", printed);
    }
    free(printed);
    return is_there;
}

static const char whole[] =
    "hvd: straggler report, 4 ranks, 125.0 s, 1000 batches compared\n"
    "Rank 2 on node\"2 was the last in 750 of 1000 batches, by 80.0 ms; the job lost 48 "
    "% "
    "of its time waiting for it.\n"
    "\n"
    " rank  host   times last   of all  late, mean  late, most      waited  of time\n"
    "    2  node\"2        750   75.0 %     80.0 ms       1.5 s      1.2 ms    0.0 %\n"
    "    3  n3            200   20.0 %      5.0 ms     20.0 ms      1.5 ms    0.0 %\n"
    "    0  n1              1    0.1 %        4 us        4 us      61.5 s   49.2 %\n"
    "    1  n1              0    0.0 %           -           -      62.0 s   49.6 %\n"
    "Lateness: how long the second-slowest rank waited for the slowest. Batches with no "
    "late rank: 49.\n"
    "\n"
    "each rank       batches   tensors        data        time          rate\n"
    "allreduce          1000     16100     1.0 GiB       2.0 s   512.0 MiB/s\n"
    "barrier               2         2         0 B      100 us             -\n"
    "Time does not include waiting for late ranks.\n";

static const char cut[] =
    "hvd: straggler report, 4 ranks, 125.0 s, 1000 batches compared\n"
    "Incomplete: the job was still running when this was written, or it failed.\n"
    "Rank 2 on node\"2 was the last in 750 of 1000 batches, by 80.0 ms; the job lost 48 "
    "% "
    "of its time waiting for it.\n"
    "\n"
    " rank  host   times last   of all  late, mean  late, most      waited  of time\n"
    "    2  node\"2        750   75.0 %     80.0 ms       1.5 s      1.2 ms    0.0 %\n"
    "    3  n3            200   20.0 %      5.0 ms     20.0 ms      1.5 ms    0.0 %\n"
    "       and 2 more ranks with less lateness\n"
    "Lateness: how long the second-slowest rank waited for the slowest. Batches with no "
    "late rank: 49.\n"
    "\n"
    "each rank       batches   tensors        data        time          rate\n"
    "allreduce          1000     16100     1.0 GiB       2.0 s   512.0 MiB/s\n"
    "barrier               2         2         0 B      100 us             -\n"
    "Time does not include waiting for late ranks.\n";

static const char object[] =
    "{\n"
    "  \"complete\": false,\n"
    "  \"size\": 4,\n"
    "  \"elapsed_us\": 125000000,\n"
    "  \"batches_compared\": 1000,\n"
    "  \"batches_even\": 49,\n"
    "  \"late_rank\": 2,\n"
    "  \"verdict\": \"Rank 2 on node\\\"2 was the last in 750 of 1000 batches, by 80.0 "
    "ms; "
    "the job lost 48 % of its time waiting for it.\",\n"
    "  \"ranks\": [\n"
    "    {\"rank\": 0, \"host\": \"n1\", \"times_last\": 1, \"late_us\": 4, "
    "\"late_mean_us\": 4, \"late_most_us\": 4, \"waited_us\": 61500000},\n"
    "    {\"rank\": 1, \"host\": \"n1\", \"times_last\": 0, \"late_us\": 0, "
    "\"late_mean_us\": 0, \"late_most_us\": 0, \"waited_us\": 62000000},\n"
    "    {\"rank\": 2, \"host\": \"node\\\"2\", \"times_last\": 750, \"late_us\": "
    "60000000, \"late_mean_us\": 80000, \"late_most_us\": 1500000, \"waited_us\": "
    "1200},\n"
    "    {\"rank\": 3, \"host\": \"n3\", \"times_last\": 200, \"late_us\": 999000, "
    "\"late_mean_us\": 4995, \"late_most_us\": 20000, \"waited_us\": 1500}\n"
    "  ],\n"
    "  \"collectives_per_rank\": {\n"
    "    \"allreduce\": {\"batches\": 1000, \"tensors\": 16100, \"bytes\": 1073741824, "
    "\"time_us\": 2000000},\n"
    "    \"barrier\": {\"batches\": 2, \"tensors\": 2, \"bytes\": 0, \"time_us\": 100}\n"
    "  }\n"
    "}\n";

static void test_table(void)
{
    struct hvd_straggler_sums sums = make_sums();

    tap_ok(prints(table, &sums, 16, whole),
           "the table begins with the rank with the most lateness");
    sums.is_complete = false;
    tap_ok(prints(table, &sums, 2, cut),
           "a terminal gets the worst ranks, and a note that the report is incomplete");
    tap_ok(prints(json, &sums, 2, object), "JSON has all ranks, in their order");
}

/* Rank 2 reads its data 52 s longer than the others, who spend more time in "step". */
static void test_sections(void)
{
    static const struct hvd_straggler_section list[] = {{"data", 0}, {"step", 0}};
    int64_t times_ns[4 * HVD_SECTIONS] = {0};
    struct hvd_straggler_sums sums = make_sums();

    for (int rank = 0; rank < 4; rank++) {
        times_ns[(size_t)rank * HVD_SECTIONS] = rank == 2 ? 53000000000 : 1000000000;
        times_ns[(size_t)rank * HVD_SECTIONS + 1] = rank == 2 ? 1500000 : 60000000000;
    }
    sums.section_count = 2;
    sums.sections = list;
    sums.section_ns = times_ns;
    tap_ok(prints_part(table, &sums,
                       "the job lost 48 % of its time waiting for it, 87 % of that in "
                       "section 'data'.\n"),
           "the verdict names the section in which the late rank spent the time");
    tap_ok(
        prints_part(table, &sums,
                    "each rank, in sections               median     longest  by rank\n"
                    "data                                  1.0 s      53.0 s  2 on "
                    "node\"2\n"
                    "step                                 60.0 s      60.0 s  0 on n1\n"),
        "the table of sections names the rank that was longest in each");
    tap_ok(prints_part(json, &sums,
                       "  \"sections_us\": {\n"
                       "    \"data\": [1000000, 1000000, 53000000, 1000000],\n"
                       "    \"step\": [60000000, 60000000, 1500, 60000000]\n  }\n}\n"),
           "JSON has the time of each rank in each section");
}

/* Two ranks that are late alike are no straggler, nor is one that is hardly late. */
static void test_verdict(void)
{
    struct hvd_straggler_rank alike[4] = {{0}};
    struct hvd_straggler_sums sums = make_sums();

    alike[0] = (struct hvd_straggler_rank){.last = 400, .late_us = 30000000};
    alike[3] = (struct hvd_straggler_rank){.last = 600, .late_us = 40000000};
    sums.ranks = alike;
    tap_ok(hvd_straggler_judge(&sums, &job).rank == -1,
           "no rank is named if two are late about equally");
    alike[3].late_us = 70000000;
    tap_ok(hvd_straggler_judge(&sums, &job).rank == 3,
           "a rank with more than twice the lateness of the others is named");
    alike[0].late_us = 0;
    alike[3].late_us = 1000000;
    tap_ok(hvd_straggler_judge(&sums, &job).rank == -1,
           "no rank is named that cost less than 1 %% of the time");
}

static void test_empty(void)
{
    static const struct hvd_straggler_rank nobody;
    const struct hvd_straggler_sums sums = {
        .size = 1, .is_complete = true, .ranks = &nobody};

    tap_ok(prints(json, &sums, 16,
                  "{\n  \"complete\": true,\n  \"size\": 1,\n"
                  "  \"elapsed_us\": 125000000,\n  \"batches_compared\": 0,\n"
                  "  \"batches_even\": 0,\n"
                  "  \"late_rank\": -1,\n"
                  "  \"verdict\": \"No rank stands out as late.\",\n  \"ranks\": [\n"
                  "    {\"rank\": 0, \"host\": \"n1\", \"times_last\": 0, "
                  "\"late_us\": 0, \"late_mean_us\": 0, \"late_most_us\": 0, "
                  "\"waited_us\": 0}\n  ],\n  \"collectives_per_rank\": {\n  }\n}\n"),
           "a job that did nothing is an object too");
}

int main(void)
{
    test_table();
    test_sections();
    test_verdict();
    test_empty();
    return tap_done();
}
