/* SPDX-License-Identifier: Apache-2.0 */
/* Records what the device did for a batch, and when, for the timeline, under Horovod's
 * activity names. A trace begins with the first work of a batch and ends with the mark of
 * the last. A NULL trace means that the batch is not traced: there is no timeline, or
 * memory ran out.
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_TRACE_H
#define HVD_GPU_TRACE_H

#include "collectives/request/batch.h"
#include "collectives/gpu/gpu_module.h"
#include "collectives/trace/trace_text.h"

struct hvd_gpu_runtime;
struct hvd_gpu_pool;

enum {
    HVD_GPU_TRACE_SPANS = HVD_TRACE_MOST_SPANS - 2, /* see hvd_timeline_device */
    /* works measured at the same time; further ones are not measured */
    HVD_GPU_TRACE_WORKS = 4,
};

struct hvd_gpu_trace {
    struct hvd_gpu_pool *pool; /* owned */
    enum hvd_kind kind;
    /* timings whose spans have not been collected yet */
    struct hvd_gpu_timing *timings[HVD_GPU_TRACE_WORKS];
    enum hvd_gpu_queue queues[HVD_GPU_TRACE_WORKS];
    int timing_count;
    int64_t since_ns; /* when the first work was submitted */
    struct hvd_trace_span spans[HVD_GPU_TRACE_SPANS];
    int count;
};

/* Call before submitting work of a batch to a queue: measures it if there is a timeline.
 * Creates *trace if it is NULL. */
void hvd_gpu_trace_work(struct hvd_gpu_trace **trace, const struct hvd_gpu_runtime *gpu,
                        enum hvd_kind kind, enum hvd_gpu_queue queue,
                        struct hvd_gpu_work *work);

/* Collects the spans, when the device has completed all work. */
void hvd_gpu_trace_collect(struct hvd_gpu_trace *trace);

/* Adds a span of the host, from the end of the last collected span until now. name must
 * outlive the trace. */
void hvd_gpu_trace_host(struct hvd_gpu_trace *trace, const char *name);

/* Returns the trace of a launched entry's batch, or NULL. Borrowed. */
const struct hvd_gpu_trace *hvd_gpu_trace_of(const struct hvd_entry *entry);

void hvd_gpu_trace_destroy(struct hvd_gpu_trace *trace);

#endif
