/* SPDX-License-Identifier: Apache-2.0 */
/* Measures below which size the tensors of a batch should be packed for NCCL. Unless
 * HVD_GPU_PACK_BELOW is set, the ranks of a process set do this before the first batch
 * for which it matters: they pack and unpack tensors, reduce the pack, and reduce each
 * tensor by itself.
 *
 *   ASK    each rank tells whether it has memory for that; if one has not, nothing is
 *          measured
 *   RUN    one work of a few rounds
 *   TELL   the ranks exchange their times; all decide alike
 *
 * The trial in gpu_algorithm.c measures batches of the user. Such a trial does not work
 * here: a pass over memory and a call cost a few microseconds, which are lost in the time
 * of a batch, because it includes waiting for input and for other ranks. */
#include <inttypes.h>

#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "collectives/gpu/gpu_rendezvous.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

static const size_t pack_bytes = (size_t)HVD_GPU_PACKING_TENSORS * HVD_GPU_PACKING_BYTES;

/* Returns the member with the largest HVD_GPU_PACK_BELOW; -1 if no rank has set it. */
static int find_asker(const struct hvd_gpu_rendezvous *rendezvous)
{
    int64_t most = HVD_GPU_PACK_AUTO;
    int asker = -1;

    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        if (rendezvous->offers[i].pack_below > most) {
            most = rendezvous->offers[i].pack_below;
            asker = i;
        }
    }
    return asker;
}

void hvd_gpu_packing_agree(struct hvd_gpu_run *run,
                           const struct hvd_gpu_rendezvous *rendezvous)
{
    int asker = find_asker(rendezvous);

    run->set->measures_packing = asker < 0 && run->team->layout->size > 1;
    run->set->pack_below =
        asker < 0 ? HVD_GPU_PACKING_USUAL : rendezvous->offers[asker].pack_below;
    if (asker >= 0 && rendezvous->team->rank == 0) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: tensors below %" PRId64
                " bytes are packed for NCCL: " HVD_ENV_GPU_PACK_BELOW " on rank %d",
                run->set->id, run->set->pack_below, rendezvous->team->ranks[asker]);
    }
}

int hvd_gpu_packing_reserve(struct hvd_gpu_run *run, struct hvd_error *err)
{
    return run->set->pack_below > 0 && run->team->layout->size > 1
               ? hvd_gpu_launch_reserve(run, 2 * pack_bytes, err)
               : 0;
}

/* Whether the limit should be measured before this batch. The result is the same on all
 * ranks. */
bool hvd_gpu_packing_wanted(const struct hvd_gpu_run *run)
{
    const struct hvd_batch *batch = run->batch;
    bool differs = false;

    if (!run->set->measures_packing || batch->header.kind != HVD_KIND_ALLREDUCE ||
        batch->header.count < 2 || batch->entries[0]->descriptor.wire != 0) {
        return false;
    }
    for (int64_t i = 0; i < batch->header.count; i++) {
        int64_t bytes = hvd_descriptor_bytes(&batch->entries[i]->descriptor);

        differs |= bytes >= HVD_GPU_PACKING_LEAST && bytes < HVD_GPU_PACKING_MOST;
    }
    return differs;
}

static void say_unmeasured(const struct hvd_gpu_run *run, const char *reason)
{
    hvd_log(HVD_LOG_INFO,
            "process set %d: rank %d cannot measure the cost of packing tensors: %s",
            run->set->id, run->gpu->config.boot->rank, reason);
}

/* Takes memory for the measurement. This is the buffer for packed tensors if it is large
 * enough, because all work with that buffer runs on the same stream. */
static int take_memory(const struct hvd_gpu_run *run, struct hvd_gpu_buffer **out,
                       struct hvd_error *err)
{
    struct hvd_gpu_buffer *pack = run->gpu->pack;

    if (pack == NULL || pack->memory_kind != HVD_GPU_DEVICE_MEMORY ||
        pack->bytes < 2 * pack_bytes) {
        return hvd_gpu_buffer_take(run->gpu->pool, HVD_GPU_DEVICE_MEMORY, 2 * pack_bytes,
                                   out, err);
    }
    hvd_refcount_keep(&pack->refcount);
    *out = pack;
    return 0;
}

int hvd_gpu_packing_begin(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_packing *packing = &run->packing;
    struct hvd_error problem = {0};
    int status = take_memory(run, &packing->buffer, &problem);

    if (status == 0) {
        status = pool->module->timing_create(pool->device, &packing->timing, &problem);
    }
    if (status != 0) {
        say_unmeasured(run, problem.text);
    }
    packing->stage = HVD_GPU_PACKING_ASK;
    packing->times.is_known = status == 0 ? 1 : 0;
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name,
                                     &packing->times, sizeof(packing->times), err);
}

/* --- the work --- */

/* Packs or unpacks the tensors in the same way as those of a batch. */
static void add_moves(struct hvd_gpu_run *run, const char *from, char *to)
{
    const struct hvd_gpu_pool *pool = run->gpu->pool;
    bool has_kernels = pool->module->no_kernels(pool->device) == NULL;

    for (int i = 0; i < HVD_GPU_PACKING_TENSORS; i++) {
        size_t offset = (size_t)i * HVD_GPU_PACKING_BYTES;

        hvd_gpu_steps_add(&run->job.steps,
                          &(struct hvd_gpu_step){
                              .kind = has_kernels ? HVD_GPU_MOVE : HVD_GPU_COPY,
                              .from = from + offset,
                              .to = to + offset,
                              .count = HVD_GPU_PACKING_BYTES,
                              .dtype = HVD_UINT8,
                              .to_dtype = HVD_UINT8,
                              .factor = 1.0,
                          });
    }
}

/* Reduces all bytes, in `parts` allreduces. */
static void add_allreduces(struct hvd_gpu_run *run, char *memory, int parts)
{
    size_t bytes = pack_bytes / (size_t)parts;

    hvd_gpu_steps_add_kind(&run->job.steps, HVD_GPU_GROUP);
    for (int i = 0; i < parts; i++) {
        char *part = memory + (size_t)i * bytes;

        hvd_gpu_steps_add(&run->job.steps, &(struct hvd_gpu_step){
                                               .kind = HVD_GPU_ALLREDUCE,
                                               .from = part,
                                               .to = part,
                                               .count = (int64_t)(bytes / sizeof(float)),
                                               .dtype = HVD_FLOAT32,
                                               .op = HVD_SUM,
                                               .factor = 1.0,
                                           });
    }
    hvd_gpu_steps_add_kind(&run->job.steps, HVD_GPU_GROUP_END);
}

/* Submits the rounds. The fastest round counts for each part; the first one warms up. */
static int begin_rounds(struct hvd_gpu_run *run, struct hvd_error *err)
{
    char *tensors = run->packing.buffer->memory;
    char *window = hvd_gpu_set_window(run->set, pack_bytes);
    char *pack = window != NULL ? window : tensors + pack_bytes;

    hvd_gpu_steps_add(&run->job.steps,
                      &(struct hvd_gpu_step){.kind = HVD_GPU_ZERO,
                                             .to = tensors,
                                             .count = (int64_t)(2 * pack_bytes)});
    for (int i = 0; i < HVD_GPU_PACKING_ROUNDS; i++) {
        add_moves(run, tensors, pack);
        add_allreduces(run, pack, 1);
        add_moves(run, pack, tensors);
        add_allreduces(run, tensors, HVD_GPU_PACKING_TENSORS);
    }
    run->job.work.timing = run->packing.timing;
    run->packing.stage = HVD_GPU_PACKING_RUN;
    return hvd_gpu_job_submit(run->gpu, &run->job, HVD_GPU_COLLECT, run->set->comm, err);
}

/* --- the stages --- */

void hvd_gpu_packing_finish(struct hvd_gpu_run *run)
{
    struct hvd_gpu_packing *packing = &run->packing;

    if (packing->timing != NULL) {
        run->gpu->pool->module->timing_destroy(packing->timing);
    }
    hvd_gpu_buffer_drop(packing->buffer);
    *packing = (struct hvd_gpu_packing){.stage = packing->stage, .times = packing->times};
}

/* Keeps the memory for later batches, most of which need no more for packing. */
static void keep_as_pack(struct hvd_gpu_run *run)
{
    struct hvd_gpu_buffer **pack = &run->gpu->pack;

    if (*pack == NULL) {
        *pack = run->packing.buffer;
        run->packing.buffer = NULL;
    }
}

static void end_packing(struct hvd_gpu_run *run)
{
    hvd_gpu_host_gather_end(&run->gather);
    keep_as_pack(run);
    hvd_gpu_packing_finish(run);
    run->set->measures_packing = false;
    run->packing.stage = HVD_GPU_PACKING_DONE;
}

/* Decides from the times of all ranks, so that all ranks decide alike. */
static void decide_limit(struct hvd_gpu_run *run)
{
    const struct hvd_gpu_packing_times *told = hvd_gpu_host_gather_result(&run->gather);
    struct hvd_gpu_packing_times agreed;
    int64_t limit = hvd_gpu_packing_limit(told, run->team->layout->size, &agreed);
    enum hvd_log_level level = run->team->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG;

    run->set->pack_below = limit;
    if (agreed.is_known) {
        hvd_log(
            level,
            "process set %d: tensors below %" PRId64
            " bytes are packed for NCCL: measured with %d tensors of %d bytes: %.1f us "
            "to "
            "pack and unpack them, %.1f us for one allreduce of the pack, %.1f us for "
            "an allreduce of each",
            run->set->id, limit, HVD_GPU_PACKING_TENSORS, HVD_GPU_PACKING_BYTES,
            (double)agreed.moves_ns * 1e-3, (double)agreed.packed_ns * 1e-3,
            (double)agreed.apart_ns * 1e-3);
    } else {
        hvd_log(level,
                "process set %d: tensors below %" PRId64
                " bytes are packed for NCCL: not measured on all ranks",
                run->set->id, limit);
    }
    end_packing(run);
}

static int finish_ask(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_packing_times *told = hvd_gpu_host_gather_result(&run->gather);
    bool can_all = true;

    for (int i = 0; i < run->team->layout->size; i++) {
        can_all = can_all && told[i].is_known;
    }
    if (!can_all) {
        decide_limit(run);
        return 0;
    }
    hvd_gpu_host_gather_end(&run->gather);
    return begin_rounds(run, err);
}

static int finish_rounds(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_packing *packing = &run->packing;
    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS];
    int status = hvd_gpu_job_reached(&run->job, err);

    if (status != 0) {
        return status;
    }
    packing->times = hvd_gpu_packing_read(
        spans, run->gpu->pool->module->timing_read(packing->timing, spans));
    if (!packing->times.is_known) {
        say_unmeasured(run, "the device reports no times");
    }
    hvd_gpu_job_end(run->gpu, &run->job);
    packing->stage = HVD_GPU_PACKING_TELL;
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name,
                                     &packing->times, sizeof(packing->times), err);
}

static int step_packing(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                        struct hvd_error *err)
{
    int status;

    if (run->packing.stage == HVD_GPU_PACKING_RUN) {
        return finish_rounds(run, err);
    }
    status = hvd_gpu_host_gather_progress(&run->gather, work, moved, err);
    if (status != 0) {
        return status;
    }
    if (run->packing.stage == HVD_GPU_PACKING_ASK) {
        return finish_ask(run, err);
    }
    decide_limit(run);
    return 0;
}

int hvd_gpu_packing_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && run->packing.stage != HVD_GPU_PACKING_DONE) {
        status = step_packing(run, work, moved, err);
    }
    return status;
}
