/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the counters of a node in Prometheus' text format. */
#include "collectives/trace/metrics_text.h"

#include <inttypes.h>
#include <stddef.h>

static const int64_t second_ns = 1000000000;

static void begin_family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Prints NAME="VALUE". Prometheus rejects a whole file for one byte that is not UTF-8, so
 * only printable ASCII is passed on. */
static void print_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=\"", name);
    for (; *value != '\0'; value++) {
        const bool is_plain = *value >= ' ' && *value <= '~';

        if (*value == '"' || *value == '\\') {
            fputc('\\', out);
        }
        fputc(is_plain ? *value : '_', out);
    }
    fputc('"', out);
}

/* Begins a sample: its name and the labels that all samples have. */
static void begin_sample(FILE *out, const char *name, const struct hvd_metrics_node *node,
                         const char *host)
{
    fprintf(out, "%s{", name);
    print_label(out, "job", node->job);
    fputc(',', out);
    print_label(out, "step", node->step);
    fputc(',', out);
    print_label(out, "user", node->user);
    fputc(',', out);
    print_label(out, "node", host);
}

static void end_count(FILE *out, uint64_t value)
{
    fprintf(out, "} %" PRIu64 "\n", value);
}

/* Prints without floating-point numbers, whose comma depends on the locale. */
static void end_seconds(FILE *out, uint64_t ns)
{
    fprintf(out, "} %" PRIu64 ".%09" PRIu64 "\n", ns / (uint64_t)second_ns,
            ns % (uint64_t)second_ns);
}

/* --- of the node --- */

static void print_gauge(FILE *out, const struct hvd_metrics_node *node, const char *name,
                        const char *help, int value)
{
    begin_family(out, name, "gauge", help);
    begin_sample(out, name, node, node->host);
    end_count(out, (uint64_t)value);
}

static void print_gauges(FILE *out, const struct hvd_metrics_node *node)
{
    print_gauge(out, node, "hvd_running",
                "1 while the job runs, 0 once this node has left it.", node->is_running);
    print_gauge(out, node, "hvd_ranks", "Ranks of the job.", node->size);
    print_gauge(out, node, "hvd_node_ranks", "Ranks of the job on this node.",
                node->local_size);
    print_gauge(out, node, "hvd_generation",
                "Elastic jobs: how often the ranks have started together, 1 for the "
                "first time. 0 in other jobs.",
                node->generation);
    begin_family(out, "hvd_written_timestamp_seconds", "gauge",
                 "When this file was written.");
    begin_sample(out, "hvd_written_timestamp_seconds", node, node->host);
    end_count(out, (uint64_t)node->written_s);
}

/* --- by operation and size class --- */

struct family {
    const char *name;
    const char *help;
    size_t field; /* offset in struct hvd_metrics_sums */
    bool is_time;
};

static const struct family by_operation[] = {
    {"hvd_batches_total",
     "Batches that have ended, added up over the ranks of the node. A batch is one "
     "collective over one tensor, or over tensors that were fused.",
     offsetof(struct hvd_metrics_sums, batches), false},
    {"hvd_tensors_total", "Tensors in these batches.",
     offsetof(struct hvd_metrics_sums, tensors), false},
    {"hvd_bytes_total", "Bytes of the ranks' input in these batches.",
     offsetof(struct hvd_metrics_sums, bytes), false},
    {"hvd_bus_bytes_total",
     "Bytes, in batches that have been timed, times the factor of nccl-tests: 2(n-1)/n "
     "for allreduce, (n-1)/n for "
     "reducescatter, alltoall and scatter, n-1 for allgather and gather (whose bytes "
     "are those of one rank), 1 for broadcast and reduce; n is the number of ranks. "
     "Divided by hvd_batch_seconds_total it is the bus bandwidth.",
     offsetof(struct hvd_metrics_sums, bus_bytes), false},
    {"hvd_batch_seconds_total",
     "Time from the start to the end of these batches on each rank, or on its GPU, added "
     "up; it includes waiting for ranks that start later.",
     offsetof(struct hvd_metrics_sums, run_ns), true},
};

static const char *const device_names[HVD_METRICS_DEVICES] = {"cpu", "gpu"};

/* Returns the sum of a field over the ranks of the node. */
static uint64_t sum_field(const struct hvd_metrics_node *node, int device, int kind,
                          int size, size_t field)
{
    uint64_t sum = 0;

    for (int i = 0; i < node->local_size; i++) {
        const struct hvd_metrics_sums *of = &node->counts[i].of[device][kind][size];

        sum += hvd_metrics_get(
            (const _Atomic uint64_t *)(const void *)((const char *)of + field));
    }
    return sum;
}

static void print_sum(FILE *out, const struct hvd_metrics_node *node,
                      const struct family *family, int device, int kind, int size)
{
    const size_t batches = offsetof(struct hvd_metrics_sums, batches);
    char word[HVD_KIND_WORD];
    uint64_t sum;

    if (sum_field(node, device, kind, size, batches) == 0) {
        return;
    }
    sum = sum_field(node, device, kind, size, family->field);
    begin_sample(out, family->name, node, node->host);
    fprintf(out, ",operation=\"%s\",size=\"%s\",device=\"%s\"",
            hvd_kind_word((enum hvd_kind)kind, word), hvd_metrics_size_name(size),
            device_names[device]);
    if (family->is_time) {
        end_seconds(out, sum);
    } else {
        end_count(out, sum);
    }
}

static void print_family(FILE *out, const struct hvd_metrics_node *node,
                         const struct family *family)
{
    begin_family(out, family->name, "counter", family->help);
    for (int device = 0; device < HVD_METRICS_DEVICES; device++) {
        for (int kind = 0; kind < HVD_STRAGGLER_KINDS; kind++) {
            for (int size = 0; size < HVD_METRICS_SIZES; size++) {
                print_sum(out, node, family, device, kind, size);
            }
        }
    }
}

/* --- by rank --- */

static const struct family by_rank[] = {
    {"hvd_rank_batches_total", "Batches that have ended on this rank.",
     offsetof(struct hvd_metrics_counts, batches), false},
    {"hvd_rank_busy_seconds_total",
     "Time of this rank's batches from their submission, or the end of the batch before "
     "them, to their end. The rank that arrives last has the least.",
     offsetof(struct hvd_metrics_counts, busy_ns), true},
    {"hvd_rank_stall_warnings_total",
     "Warnings about stalled ranks that this rank has logged; rank 0 logs those of the "
     "whole job.",
     offsetof(struct hvd_metrics_counts, stall_warnings), false},
    {"hvd_rank_steps_total", "Steps of the optimizer.",
     offsetof(struct hvd_metrics_counts, steps), false},
};

static void print_ranks(FILE *out, const struct hvd_metrics_node *node,
                        const struct family *family)
{
    begin_family(out, family->name, "counter", family->help);
    for (int i = 0; i < node->local_size; i++) {
        const void *field = (const char *)&node->counts[i] + family->field;
        uint64_t value = hvd_metrics_get((const _Atomic uint64_t *)field);

        begin_sample(out, family->name, node, node->host);
        fprintf(out, ",rank=\"%d\"", node->ranks[i]);
        if (family->is_time) {
            end_seconds(out, value);
        } else {
            end_count(out, value);
        }
    }
}

/* --- of the whole job, on rank 0 --- */

static const struct family by_lateness[] = {
    {"hvd_rank_late_batches_total", "Batches in which this rank was the last to arrive.",
     offsetof(struct hvd_metrics_lateness, late_batches), false},
    {"hvd_rank_late_seconds_total",
     "Time by which this rank arrived later than the last but one.",
     offsetof(struct hvd_metrics_lateness, late_us), true},
    {"hvd_rank_waited_seconds_total",
     "Time that this rank waited for ranks that arrived later.",
     offsetof(struct hvd_metrics_lateness, waited_us), true},
};

static void print_lateness(FILE *out, const struct hvd_metrics_node *node,
                           const struct family *family)
{
    begin_family(out, family->name, "counter", family->help);
    for (int rank = 0; rank < node->size; rank++) {
        const void *field = (const char *)&node->lateness[rank] + family->field;
        uint64_t value = hvd_metrics_get((const _Atomic uint64_t *)field);

        begin_sample(out, family->name, node, node->nodes[rank]);
        fprintf(out, ",rank=\"%d\"", rank);
        if (family->is_time) {
            end_seconds(out, value * 1000);
        } else {
            end_count(out, value);
        }
    }
}

static void print_job(FILE *out, const struct hvd_metrics_node *node)
{
    static const char compared[] = "hvd_compared_batches_total";

    begin_family(out, compared, "counter",
                 "Batches of which rank 0 knows when each rank arrived; the metrics of "
                 "late ranks are about these.");
    begin_sample(out, compared, node, node->host);
    end_count(out, node->compared);
    for (size_t i = 0; i < sizeof(by_lateness) / sizeof(by_lateness[0]); i++) {
        print_lateness(out, node, &by_lateness[i]);
    }
}

void hvd_metrics_print(const struct hvd_metrics_node *node, FILE *out)
{
    print_gauges(out, node);
    for (size_t i = 0; i < sizeof(by_operation) / sizeof(by_operation[0]); i++) {
        print_family(out, node, &by_operation[i]);
    }
    for (size_t i = 0; i < sizeof(by_rank) / sizeof(by_rank[0]); i++) {
        print_ranks(out, node, &by_rank[i]);
    }
    if (node->lateness != NULL) {
        print_job(out, node);
    }
}
