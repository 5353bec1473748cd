/* SPDX-License-Identifier: Apache-2.0 */
/* When the device did what for a batch, in Horovod's words: for the timeline, and only
 * while there is one. Begins with the first work of a batch, ends with the mark of the
 * last. NULL is a batch of which nobody wants to know; so is one without memory for it.
 *
 * Threads: one at a time (the engine's progress lock). */
#ifndef HVD_GPU_TRACE_H
#define HVD_GPU_TRACE_H

#include "collectives/agreement/batch.h"
#include "collectives/gpu/gpu_module.h"
#include "collectives/observe/trace_text.h"

struct hvd_gpu_runtime;
struct hvd_gpu_pool;

enum {
    HVD_GPU_TRACE_SPANS = HVD_TRACE_MOST_SPANS - 2, /* see hvd_timeline_device */
    HVD_GPU_TRACE_WORKS = 4, /* launched, and measured; what is more is not */
};

struct hvd_gpu_trace {
    struct hvd_gpu_pool *pool; /* kept */
    enum hvd_kind kind;
    /* Of works that are not collected yet. */
    struct hvd_gpu_timing *timings[HVD_GPU_TRACE_WORKS];
    enum hvd_gpu_queue queues[HVD_GPU_TRACE_WORKS];
    int timing_count;
    int64_t since_ns; /* the first work was submitted */
    struct hvd_trace_span spans[HVD_GPU_TRACE_SPANS];
    int count;
};

/* A work of a batch is about to be submitted, on a queue: while there is a timeline it is
 * measured. *trace is made if it is NULL. */
void hvd_gpu_trace_work(struct hvd_gpu_trace **trace, const struct hvd_gpu_runtime *gpu,
                        enum hvd_kind kind, enum hvd_gpu_queue queue,
                        struct hvd_gpu_work *work);

/* The device has come to the end of all works: their spans are known. */
void hvd_gpu_trace_collect(struct hvd_gpu_trace *trace);

/* Since what was collected last, this was done on the host. name outlives the trace. */
void hvd_gpu_trace_host(struct hvd_gpu_trace *trace, const char *name);

/* Of the batch of an entry that has been launched; NULL: none. Borrowed. */
const struct hvd_gpu_trace *hvd_gpu_trace_of(const struct hvd_entry *entry);

void hvd_gpu_trace_destroy(struct hvd_gpu_trace *trace);

#endif
