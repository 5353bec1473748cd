/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of a node, and the text that they become. */
#include "collectives/trace/metrics_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum {
    LOCAL = 2
};

static struct hvd_metrics_counts counts[LOCAL];
static struct hvd_metrics_lateness lateness[LOCAL];
static const int ranks[LOCAL] = {4, 5};
static const char *const nodes[LOCAL] = {"n1", "n2"};

static struct hvd_metrics_node facts = {
    .job = "12",
    .step = "0",
    .user = "ada",
    .host = "n1",
    .counts = counts,
    .ranks = ranks,
    .local_size = LOCAL,
    .size = LOCAL,
    .is_running = true,
};

/* Counts a batch that began at 1 s, ran for a millisecond, and was submitted half a
 * millisecond before. */
static void count(int rank, enum hvd_kind kind, int64_t bytes, int set_size,
                  bool is_on_gpu)
{
    const struct hvd_straggler_batch batch = {
        .kind = kind,
        .tensors = 3,
        .bytes = bytes,
        .submitted_ns = 999500000,
        .started_ns = 1000000000,
        .ended_ns = 1001000000,
    };

    const struct hvd_metrics_run run = {kind, bytes, set_size, 1000000};

    hvd_metrics_count(&counts[rank], &batch, is_on_gpu, batch.submitted_ns);
    hvd_metrics_time(&counts[rank], &run, is_on_gpu);
}

/* Whether the printed text has this line. */
static bool has_line(const char *line)
{
    char *printed = NULL;
    char *wanted = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&printed, &bytes);
    bool has;

    if (out == NULL || asprintf(&wanted, "\n%s\n", line) < 0) {
        return false;
    }
    hvd_metrics_print(&facts, out);
    fclose(out);
    has = strstr(printed, wanted) != NULL;
    free(wanted);
    free(printed);
    return has;
}

#define NODE "{job=\"12\",step=\"0\",user=\"ada\",node=\"n1\""

static void test_batches(void)
{
    count(0, HVD_KIND_ALLREDUCE, 4096, 4, false);
    count(1, HVD_KIND_ALLREDUCE, 4096, 4, false);
    count(1, HVD_KIND_ALLREDUCE, 4097, 4, false);
    tap_ok(has_line("hvd_batches_total" NODE
                    ",operation=\"allreduce\",size=\"4KiB\",device=\"cpu\"} 2") &&
               has_line("hvd_tensors_total" NODE
                        ",operation=\"allreduce\",size=\"4KiB\",device=\"cpu\"} 6") &&
               has_line("hvd_bytes_total" NODE
                        ",operation=\"allreduce\",size=\"4KiB\",device=\"cpu\"} 8192"),
           "batches, tensors and bytes are added up over the ranks of the node");
    tap_ok(has_line("hvd_bytes_total" NODE
                    ",operation=\"allreduce\",size=\"64KiB\",device=\"cpu\"} 4097"),
           "a batch that is one byte too large belongs to the next size class");
    tap_ok(has_line("hvd_batch_seconds_total" NODE
                    ",operation=\"allreduce\",size=\"4KiB\",device=\"cpu\"} 0.002000000"),
           "the time of a batch is from its start to its end");
    tap_ok(has_line("hvd_rank_batches_total" NODE ",rank=\"5\"} 2") &&
               has_line("hvd_rank_busy_seconds_total" NODE ",rank=\"5\"} 0.003000000"),
           "each rank has its batches, and the time since their submission");
}

static void test_sizes(void)
{
    tap_ok(hvd_metrics_size_of(0) == 0 && hvd_metrics_size_of(INT64_MAX) == 5 &&
               hvd_metrics_size_of(256 << 20) == 4 &&
               strcmp(hvd_metrics_size_name(4), "256MiB") == 0,
           "every size has a class, from nothing to the largest number");
}

/* For each kind: the bytes of one rank, and the bus bytes by nccl-tests' formulas. There,
 * an allgather of 4 ranks with 1000 bytes each has the size 4000. */
static void test_bus_bytes(void)
{
    static const struct {
        enum hvd_kind kind;
        const char *line;
    } cases[] = {
        {HVD_KIND_ALLREDUCE, "operation=\"allreduce\",size=\"1MiB\",device=\"cpu\"} "
                             "1500000"},
        {HVD_KIND_ALLGATHER, "operation=\"allgather\",size=\"1MiB\",device=\"cpu\"} "
                             "3000000"},
        {HVD_KIND_REDUCESCATTER,
         "operation=\"reducescatter\",size=\"1MiB\",device=\"cpu\"} 750000"},
        {HVD_KIND_ALLTOALL, "operation=\"alltoall\",size=\"1MiB\",device=\"cpu\"} "
                            "750000"},
        {HVD_KIND_BROADCAST, "operation=\"broadcast\",size=\"1MiB\",device=\"cpu\"} "
                             "1000000"},
    };
    char line[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(counts, 0, sizeof(counts));
        count(0, cases[i].kind, 1000000, 4, false);
        snprintf(line, sizeof(line), "hvd_bus_bytes_total" NODE ",%s", cases[i].line);
        tap_ok(has_line(line), "bus bytes of 4 ranks: %s", cases[i].line);
    }
    memset(counts, 0, sizeof(counts));
    count(0, HVD_KIND_ALLREDUCE, 1000000, 1, false);
    tap_ok(has_line("hvd_bus_bytes_total" NODE
                    ",operation=\"allreduce\",size=\"1MiB\",device=\"cpu\"} 0"),
           "a rank that is alone moves nothing");
}

static void test_gpu(void)
{
    memset(counts, 0, sizeof(counts));
    count(0, HVD_KIND_ALLREDUCE, 1000, 2, true);
    tap_ok(has_line("hvd_bytes_total" NODE
                    ",operation=\"allreduce\",size=\"4KiB\",device=\"gpu\"} 1000") &&
               has_line(
                   "hvd_batch_seconds_total" NODE
                   ",operation=\"allreduce\",size=\"4KiB\",device=\"gpu\"} 0.001000000"),
           "batches on a GPU have a label of their own");
}

static void test_job(void)
{
    tap_ok(!has_line("hvd_compared_batches_total" NODE "} 7"),
           "only rank 0 knows who was late");
    facts.lateness = lateness;
    facts.nodes = nodes;
    facts.compared = 7;
    facts.generation = 3;
    facts.written_s = 1800000000;
    hvd_metrics_set(&lateness[1].late_batches, 2);
    hvd_metrics_set(&lateness[1].late_us, 1500000);
    hvd_metrics_set(&lateness[0].waited_us, 10);
    hvd_metrics_add(&counts[0].steps, 9);
    hvd_metrics_set(&counts[0].stall_warnings, 1);
    tap_ok(
        has_line("hvd_compared_batches_total" NODE "} 7") &&
            has_line("hvd_rank_late_batches_total{job=\"12\",step=\"0\",user=\"ada\","
                     "node=\"n2\",rank=\"1\"} 2") &&
            has_line("hvd_rank_late_seconds_total{job=\"12\",step=\"0\",user=\"ada\","
                     "node=\"n2\",rank=\"1\"} 1.500000000") &&
            has_line("hvd_rank_waited_seconds_total{job=\"12\",step=\"0\",user=\"ada\","
                     "node=\"n1\",rank=\"0\"} 0.000010000"),
        "rank 0 prints the lateness of each rank, with the node of that rank");
    tap_ok(has_line("hvd_generation" NODE "} 3") && has_line("hvd_running" NODE "} 1") &&
               has_line("hvd_written_timestamp_seconds" NODE "} 1800000000") &&
               has_line("hvd_rank_steps_total" NODE ",rank=\"4\"} 9") &&
               has_line("hvd_rank_stall_warnings_total" NODE ",rank=\"4\"} 1"),
           "generation, time, steps and warnings about stalls are printed");
}

static void test_labels(void)
{
    facts.user = "a\"b\\c\nd\xe4";
    tap_ok(
        has_line("hvd_ranks{job=\"12\",step=\"0\",user=\"a\\\"b\\\\c_d_\",node=\"n1\"} "
                 "2"),
        "no text in a label can break the file");
}

int main(void)
{
    test_batches();
    test_sizes();
    test_bus_bytes();
    test_gpu();
    test_job();
    test_labels();
    return tap_done();
}
