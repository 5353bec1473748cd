/* SPDX-License-Identifier: Apache-2.0 */
/* The counts behind HVD_METRICS: size classes, and the factors of bus bandwidth. */
#include "collectives/trace/metrics_counts.h"

/* Steps of 16 tell the sizes apart that differ in what limits them: latency, one link,
 * memory. More classes would mean more time series for each job. */
static const struct {
    int64_t most; /* bytes */
    const char *name;
} sizes[HVD_METRICS_SIZES] = {
    {4 << 10, "4KiB"},   {64 << 10, "64KiB"},   {1 << 20, "1MiB"},
    {16 << 20, "16MiB"}, {256 << 20, "256MiB"}, {INT64_MAX, "more"},
};

int hvd_metrics_size_of(int64_t bytes)
{
    int size = 0;

    while (bytes > sizes[size].most) {
        size++;
    }
    return size;
}

const char *hvd_metrics_size_name(int size)
{
    return sizes[size].name;
}

/* Returns the bytes whose quotient by the time is the bus bandwidth of nccl-tests. Its
 * size of an allgather or gather is that of all ranks together; ours is one rank's, so
 * the factor (n - 1) / n becomes n - 1. */
static uint64_t bus_bytes(enum hvd_kind kind, int64_t bytes, int ranks)
{
    const double size = (double)bytes;
    const double n = ranks;

    switch (kind) {
    case HVD_KIND_ALLREDUCE:
    case HVD_KIND_ADASUM:
        return (uint64_t)(size * 2 * (n - 1) / n + 0.5);
    case HVD_KIND_ALLGATHER:
    case HVD_KIND_GATHER:
        return (uint64_t)(size * (n - 1) + 0.5);
    case HVD_KIND_REDUCESCATTER:
    case HVD_KIND_ALLTOALL:
    case HVD_KIND_SCATTER:
        return (uint64_t)(size * (n - 1) / n + 0.5);
    case HVD_KIND_BROADCAST:
    case HVD_KIND_REDUCE:
        return ranks > 1 ? (uint64_t)bytes : 0;
    default:
        return 0;
    }
}

static struct hvd_metrics_sums *sums_of(struct hvd_metrics_counts *counts,
                                        enum hvd_kind kind, int64_t bytes, bool is_on_gpu)
{
    return (unsigned)kind < HVD_STRAGGLER_KINDS
               ? &counts->of[is_on_gpu][kind][hvd_metrics_size_of(bytes)]
               : NULL; /* a change of process sets */
}

void hvd_metrics_count(struct hvd_metrics_counts *counts,
                       const struct hvd_straggler_batch *batch, bool is_on_gpu,
                       int64_t since_ns)
{
    struct hvd_metrics_sums *sums = sums_of(counts, batch->kind, batch->bytes, is_on_gpu);

    if (sums == NULL) {
        return;
    }
    hvd_metrics_add(&sums->batches, 1);
    hvd_metrics_add(&sums->tensors, (uint64_t)batch->tensors);
    hvd_metrics_add(&sums->bytes, (uint64_t)batch->bytes);
    hvd_metrics_add(&counts->batches, 1);
    if (batch->ended_ns > since_ns) {
        hvd_metrics_add(&counts->busy_ns, (uint64_t)(batch->ended_ns - since_ns));
    }
}

void hvd_metrics_time(struct hvd_metrics_counts *counts,
                      const struct hvd_metrics_run *run, bool is_on_gpu)
{
    struct hvd_metrics_sums *sums = sums_of(counts, run->kind, run->bytes, is_on_gpu);

    if (sums != NULL && run->run_ns > 0) {
        hvd_metrics_add(&sums->bus_bytes, bus_bytes(run->kind, run->bytes, run->ranks));
        hvd_metrics_add(&sums->run_ns, (uint64_t)run->run_ns);
    }
}
