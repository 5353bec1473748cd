/* SPDX-License-Identifier: Apache-2.0 */
/* Tests cpulist.h and cpuset.h. */
#include "gpu_binding/cpulist.h"

#include <string.h>

#include "gpu_binding/base/error.h"
#include "tests/tap.h"

static struct hvd_cpuset set_of(const int *cpus, int count)
{
    struct hvd_cpuset set = {{0}};

    for (int i = 0; i < count; i++) {
        hvd_cpuset_add(&set, cpus[i]);
    }
    return set;
}

static void writes_as(const char *text)
{
    struct hvd_cpuset set;
    char written[256];
    int status = hvd_cpulist_parse(text, &set, NULL);

    hvd_cpulist_format(&set, written, sizeof(written));
    tap_ok(status == 0 && strcmp(text, written) == 0, "%s is read and written the same",
           text);
}

static void test_notation(void)
{
    static const char *const texts[] = {
        "0",      "0-1",       "0,2",          "0-3,8",  "0-18:2,40-58:2",
        "1-79:2", "0-4:2,5-7", "3,5-6,9-30:7", "8191",   "0-8191",
        "63-64",  "62-66:2",   "0-13,42-55",   "0,1000", "0-8190:2",
    };

    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        writes_as(texts[i]);
    }
}

static void test_stride_is_kept(void)
{
    struct hvd_cpuset set;
    int even = 0;

    hvd_cpulist_parse("0-78:2", &set, NULL);
    for (int cpu = 0; cpu < 79; cpu++) {
        even += hvd_cpuset_has(&set, cpu) == (cpu % 2 == 0);
    }
    tap_ok(even == 79 && hvd_cpuset_count(&set) == 40,
           "stride_of_0-78:2_leaves_out_odd_cpus");
    hvd_cpulist_parse("0-78:50", &set, NULL);
    tap_ok(hvd_cpuset_count(&set) == 2 && hvd_cpuset_has(&set, 50),
           "stride_may_end_before_the_last_cpu");
}

static const char *const garbage[] = {
    "",
    ",",
    "0,",
    ",0",
    "a",
    "0-",
    "-1",
    "0--2",
    "3-1",
    "0-3:",
    "0-3:0",
    "0:2",
    "0-3:x",
    "0-78:2 ",
    " 0",
    "+1",
    "0x10",
    "8192",
    "0-99999999999999999999",
    "0;1",
    "0-1-2",
    "0-4:2:2",
    "1.5",
    "0\n",
    "0-3:-1",
};

static void test_garbage(void)
{
    for (unsigned i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        static const int two[] = {2};
        struct hvd_cpuset before = set_of(two, 1);
        struct hvd_cpuset set = before;
        struct hvd_error err = {0};
        int status = hvd_cpulist_parse(garbage[i], &set, &err);

        tap_ok(status == HVD_ERR_ARG && err.text[0] != '\0' &&
                   hvd_cpuset_is_equal(&set, &before),
               "garbage %u is refused with a reason and leaves the set alone", i);
    }
}

static void test_format_is_cut(void)
{
    static const int cpus[] = {1, 3, 10, 11, 12};
    struct hvd_cpuset set = set_of(cpus, 5);
    struct hvd_cpuset none = {{0}};
    char small[6] = "xxxxx";
    char text[8];

    tap_ok(hvd_cpulist_format(&set, NULL, 0) == strlen("1,3,10-12"),
           "length_is_returned_without_a_buffer");
    tap_ok(hvd_cpulist_format(&set, small, sizeof(small)) == 9 &&
               strcmp(small, "1,3,1") == 0,
           "text_is_cut_to_size");
    tap_ok(hvd_cpulist_format(&none, text, sizeof(text)) == 1 && strcmp(text, "-") == 0,
           "empty_set_is_a_dash");
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

static void test_round_trips(unsigned seed)
{
    bool passed = true;

    for (int round = 0; round < 500 && passed; round++) {
        struct hvd_cpuset set = {{0}};
        struct hvd_cpuset again = {{0}};
        static char text[64 * 1024];
        unsigned stride = 1 + next_random(&seed) % 5;
        int count = 1 + (int)(next_random(&seed) % 200);

        for (int i = 0; i < count; i++) {
            unsigned base = next_random(&seed) % (round % 2 == 0 ? 300 : HVD_CPUSET_SIZE);

            hvd_cpuset_add(&set, (int)(base - base % stride));
        }
        hvd_cpulist_format(&set, text, sizeof(text));
        passed = hvd_cpulist_parse(text, &again, NULL) == 0 &&
                 hvd_cpuset_is_equal(&set, &again);
        if (!passed) {
            tap_note("%s", text);
        }
    }
    tap_ok(passed, "random_sets_survive_writing_and_reading");
}

static void test_sets(void)
{
    static const int low[] = {0, 63, 64, 8191};
    static const int high[] = {64, 100};
    struct hvd_cpuset a = set_of(low, 4);
    struct hvd_cpuset b = set_of(high, 2);
    struct hvd_cpuset both = a;
    struct hvd_cpuset either = a;

    hvd_cpuset_keep(&both, &b);
    hvd_cpuset_join(&either, &b);
    tap_ok(hvd_cpuset_count(&both) == 1 && hvd_cpuset_has(&both, 64),
           "keep_is_the_overlap");
    tap_ok(hvd_cpuset_count(&either) == 5, "join_is_the_union");
    tap_ok(hvd_cpuset_overlaps(&a, &b) && !hvd_cpuset_is_within(&a, &b) &&
               hvd_cpuset_is_within(&both, &b),
           "overlapping_sets_are_not_within_each_other");
    hvd_cpuset_add(&a, -1);
    hvd_cpuset_add(&a, HVD_CPUSET_SIZE);
    tap_ok(hvd_cpuset_count(&a) == 4 && !hvd_cpuset_has(&a, -1) &&
               !hvd_cpuset_has(&a, HVD_CPUSET_SIZE),
           "cpus_outside_the_range_are_in_no_set");
}

int main(void)
{
    test_notation();
    test_stride_is_kept();
    test_garbage();
    test_format_is_cut();
    test_sets();
    test_round_trips(tap_seed(20240607));
    return tap_done();
}
