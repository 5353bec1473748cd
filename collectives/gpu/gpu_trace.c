/* SPDX-License-Identifier: Apache-2.0 */
/* Records what the device did for a batch, and when, under the activity names of
 * Horovod's timeline. */
#include "collectives/gpu/gpu_trace.h"

#include <stdlib.h>

#include "collectives/gpu/gpu_runtime.h"
#include "gpu_binding/base/clock.h"

static struct hvd_gpu_trace *create_trace(struct hvd_gpu_pool *pool, enum hvd_kind kind)
{
    struct hvd_gpu_trace *trace = calloc(1, sizeof(*trace));

    if (trace != NULL) {
        hvd_refcount_keep(&pool->refcount);
        trace->pool = pool;
        trace->kind = kind;
        trace->since_ns = hvd_clock_ns();
    }
    return trace;
}

void hvd_gpu_trace_work(struct hvd_gpu_trace **trace, const struct hvd_gpu_runtime *gpu,
                        enum hvd_kind kind, enum hvd_gpu_queue queue,
                        struct hvd_gpu_work *work)
{
    struct hvd_gpu_pool *pool = gpu->pool;
    struct hvd_gpu_timing *timing;
    int at;

    work->timing = NULL;
    if (!gpu->config.is_traced(gpu->config.context)) {
        return;
    }
    if (*trace == NULL) {
        *trace = create_trace(pool, kind);
    }
    at = *trace != NULL ? (*trace)->timing_count : HVD_GPU_TRACE_WORKS;
    if (at < HVD_GPU_TRACE_WORKS &&
        pool->module->timing_create(pool->device, &timing, NULL) == 0) {
        (*trace)->timings[at] = timing;
        (*trace)->queues[at] = queue;
        (*trace)->timing_count++;
        work->timing = timing;
    }
}

static void append_span(struct hvd_gpu_trace *trace, const char *name, int64_t begin_ns,
                        int64_t end_ns)
{
    if (trace->count < HVD_GPU_TRACE_SPANS) {
        trace->spans[trace->count++] =
            (struct hvd_trace_span){.name = name, .begin_ns = begin_ns, .end_ns = end_ns};
    }
}

/* --- names --- */

static const char *name_blocks(enum hvd_kind kind)
{
    return kind == HVD_KIND_GATHER    ? "NCCL_GATHER"
           : kind == HVD_KIND_SCATTER ? "NCCL_SCATTER"
                                      : "NCCL_ALLTOALL";
}

/* Allgathers and reducescatters of unequal parts, and collectives that NCCL lacks, are
 * groups of other operations: the name is that of the collective. */
static const char *name_collective(enum hvd_kind kind, enum hvd_gpu_step_kind step)
{
    switch (step) {
    case HVD_GPU_PUSH:
        return "ONE_KERNEL_ALLREDUCE";
    case HVD_GPU_ALLREDUCE:
        return "NCCL_ALLREDUCE";
    case HVD_GPU_ALLGATHER:
        return "NCCL_ALLGATHER";
    case HVD_GPU_REDUCESCATTER:
        return "NCCL_REDUCESCATTER";
    case HVD_GPU_BROADCAST:
        return kind == HVD_KIND_ALLGATHER ? "NCCL_ALLGATHER" : "NCCL_BCAST";
    case HVD_GPU_REDUCE:
        return kind == HVD_KIND_REDUCESCATTER ? "NCCL_REDUCESCATTER" : "NCCL_REDUCE";
    default:
        return name_blocks(kind);
    }
}

static const char *name_move(enum hvd_kind kind, enum hvd_gpu_queue queue,
                             bool has_collected)
{
    if (queue == HVD_GPU_IN) {
        return "MEMCPY_IN_HOST_BUFFER";
    }
    if (queue == HVD_GPU_OUT) {
        return "MEMCPY_OUT_HOST_BUFFER";
    }
    if (kind == HVD_KIND_ALLTOALL || kind == HVD_KIND_GATHER ||
        kind == HVD_KIND_SCATTER) {
        return name_blocks(kind); /* the rank's block for itself */
    }
    return has_collected ? "MEMCPY_OUT_FUSION_BUFFER" : "MEMCPY_IN_FUSION_BUFFER";
}

static void add_span(struct hvd_gpu_trace *trace, enum hvd_gpu_queue queue,
                     const struct hvd_gpu_span *span, bool has_collected)
{
    const char *name;

    switch (span->kind) {
    case HVD_GPU_CONNECTS:
        name = "INIT_NCCL";
        break;
    case HVD_GPU_AWAITS:
        name = "WAIT_FOR_DATA";
        break;
    case HVD_GPU_MOVES:
        name = name_move(trace->kind, queue, has_collected);
        break;
    default:
        if (span->step == HVD_GPU_GROUP_END) {
            return; /* an empty group */
        }
        name = name_collective(trace->kind, span->step);
    }
    append_span(trace, name, span->begin_ns, span->end_ns);
}

static void collect_spans(struct hvd_gpu_trace *trace, int at)
{
    const struct hvd_gpu_module *module = trace->pool->module;
    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS];
    int count = module->timing_read(trace->timings[at], spans);
    bool has_collected = false;

    for (int i = 0; i < count; i++) {
        add_span(trace, trace->queues[at], &spans[i], has_collected);
        has_collected |= spans[i].kind == HVD_GPU_COLLECTS;
    }
    module->timing_destroy(trace->timings[at]);
}

void hvd_gpu_trace_collect(struct hvd_gpu_trace *trace)
{
    for (int i = 0; trace != NULL && i < trace->timing_count; i++) {
        collect_spans(trace, i);
    }
    if (trace != NULL) {
        trace->timing_count = 0;
    }
}

void hvd_gpu_trace_host(struct hvd_gpu_trace *trace, const char *name)
{
    if (trace != NULL && trace->count > 0) {
        append_span(trace, name, trace->spans[trace->count - 1].end_ns, hvd_clock_ns());
    }
}

const struct hvd_gpu_trace *hvd_gpu_trace_of(const struct hvd_entry *entry)
{
    const struct hvd_gpu_mark *mark = (const struct hvd_gpu_mark *)entry->done;

    return mark != NULL ? mark->trace : NULL;
}

void hvd_gpu_trace_destroy(struct hvd_gpu_trace *trace)
{
    if (trace == NULL) {
        return;
    }
    for (int i = 0; i < trace->timing_count; i++) {
        trace->pool->module->timing_destroy(trace->timings[i]);
    }
    hvd_refcount_drop(&trace->pool->refcount);
    free(trace);
}
