/* SPDX-License-Identifier: Apache-2.0 */
/* The counts behind HVD_METRICS. They are in the shared memory of the node: each rank
 * changes its own counts only, and the first rank of the node reads those of all, so no
 * rank waits for another.
 *
 * Threads: one thread of the rank changes a counter at a time (the progress lock); any
 * thread of any rank reads. */
#ifndef HVD_METRICS_COUNTS_H
#define HVD_METRICS_COUNTS_H

#include <stdatomic.h>

#include "collectives/trace/straggler_waits.h"

enum {
    HVD_METRICS_SIZES = 6, /* size classes of batches: metrics_counts.c */
    HVD_METRICS_DEVICES = 2,
};

/* Batches of one operation and size class. */
struct hvd_metrics_sums {
    _Atomic uint64_t batches;
    _Atomic uint64_t tensors;
    _Atomic uint64_t bytes; /* of this rank's input */
    /* These two are sums over the batches that have been timed. bus_bytes: bytes times
     * the factor by which nccl-tests makes bus bandwidth of bandwidth. */
    _Atomic uint64_t bus_bytes;
    _Atomic uint64_t run_ns;
};

struct hvd_metrics_counts {
    /* Two cache lines, because of adjacent-line prefetch. */
    _Alignas(128) _Atomic uint64_t batches;
    _Atomic uint64_t busy_ns; /* time in which batches of this rank waited or ran */
    _Atomic uint64_t stall_warnings; /* logged by this rank */
    _Atomic uint64_t steps; /* of the optimizer */
    /* by device (0: host, 1: GPU), kind and size class */
    struct hvd_metrics_sums of[HVD_METRICS_DEVICES][HVD_STRAGGLER_KINDS]
                              [HVD_METRICS_SIZES];
};

/* The lateness of a rank, which all ranks measure together: a copy of struct
 * hvd_straggler_rank that another thread may read. */
struct hvd_metrics_lateness {
    _Atomic uint64_t late_batches;
    _Atomic uint64_t late_us;
    _Atomic uint64_t waited_us;
};

/* Adds to a counter that no other thread changes. */
static inline void hvd_metrics_add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static inline void hvd_metrics_set(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static inline uint64_t hvd_metrics_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* A batch of a process set of `ranks` ranks that ran for some time. */
struct hvd_metrics_run {
    enum hvd_kind kind;
    int64_t bytes; /* of this rank's input */
    int ranks;
    int64_t run_ns;
};

/* Counts a batch. since_ns: when this rank had submitted the batch, and the batch before
 * it in the same queue had ended. */
void hvd_metrics_count(struct hvd_metrics_counts *counts,
                       const struct hvd_straggler_batch *batch, bool is_on_gpu,
                       int64_t since_ns);

/* Counts the time of a batch. A GPU tells it later than the batch is counted. */
void hvd_metrics_time(struct hvd_metrics_counts *counts,
                      const struct hvd_metrics_run *run, bool is_on_gpu);

/* Returns the size class of a batch. */
int hvd_metrics_size_of(int64_t bytes);

/* Returns the name of a size class: its largest size, such as "64KiB". */
const char *hvd_metrics_size_name(int size);

#endif
