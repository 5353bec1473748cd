/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that all ranks of a process set have registered with one of its communicators.
 *
 * NCCL leaves open what happens when it is called with registered memory on some ranks
 * only, or at other offsets in it. Here neither can be: one block for each set's track,
 * registered from its first byte on, holds what is packed of an allreduce, from its first
 * byte on, and nothing else. What that comes to goes by what the ranks have agreed on; a
 * rank that has joined packs zeros there, and has what stands in for tensors that others
 * do not pack in memory of its own. When a batch needs a larger block, all ranks need it:
 * each registers one, tells the others, and either all use theirs or none does, from then
 * on, also on the set's other tracks, whose blocks go with their communicators. */
#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

/* What NCCL likes to have at a time; and a block has at least. */
static const size_t unit = 2 << 20;

bool hvd_gpu_block_wanted(const struct hvd_gpu_run *run)
{
    struct hvd_gpu_plan plan;

    if (!run->peers->registers || run->batch->header.kind != HVD_KIND_ALLREDUCE) {
        return false;
    }
    plan = hvd_gpu_run_plan(run);
    return hvd_gpu_plan_pack(&plan) > run->peers->tracks[run->track].block_bytes;
}

/* The same on all ranks. */
static size_t new_bytes(const struct hvd_gpu_run *run)
{
    const struct hvd_gpu_plan plan = hvd_gpu_run_plan(run);
    size_t least = hvd_gpu_plan_pack(&plan);
    size_t old = run->peers->tracks[run->track].block_bytes;
    size_t bytes = old + old / 2;

    return ((bytes > least ? bytes : least) + unit - 1) / unit * unit;
}

int hvd_gpu_block_begin(struct hvd_gpu_run *run, struct hvd_error *err)
{
    run->block_bytes = new_bytes(run);
    hvd_gpu_steps_add(&run->job.steps,
                      &(struct hvd_gpu_step){.kind = HVD_GPU_REGISTER,
                                             .count = (int64_t)run->block_bytes});
    return hvd_gpu_job_submit(run->gpu, &run->job, hvd_gpu_track_queue(run->track),
                              run->peers->tracks[run->track].comm, err);
}

int hvd_gpu_block_tell(struct hvd_gpu_run *run, struct hvd_error *err)
{
    run->block = run->job.steps.steps[0].to;
    run->has_block = run->block != NULL ? 1 : 0;
    if (!run->has_block) {
        hvd_log(HVD_LOG_INFO, "process set %d: rank %d registers no memory with NCCL: %s",
                run->peers->set, run->gpu->config.boot->rank, run->job.work.error.text);
    }
    hvd_gpu_job_end(run->gpu, &run->job);
    return hvd_gpu_run_gather(run, &run->has_block, sizeof(run->has_block), err);
}

void hvd_gpu_block_end(struct hvd_gpu_run *run)
{
    const int32_t *has_block = run->gathered.result;
    struct hvd_gpu_peers *peers = run->peers;
    struct hvd_gpu_track *track = &peers->tracks[run->track];
    bool is_good = true;

    for (int i = 0; i < run->team->layout->size; i++) {
        is_good = is_good && has_block[i] != 0;
    }
    run->given_up[0] = track->block;
    run->given_up[1] = is_good ? NULL : run->block;
    peers->registers = is_good;
    track->block = is_good ? run->block : NULL;
    track->block_bytes = is_good ? run->block_bytes : 0;
    if (run->team->rank == 0) {
        hvd_log(HVD_LOG_INFO,
                is_good ? "process set %d: %zu bytes for packed tensors are registered "
                          "with NCCL"
                        : "process set %d: %zu bytes are not registered with NCCL, which "
                          "some rank cannot",
                peers->set, run->block_bytes);
    }
    hvd_gpu_run_end_gather(run);
    if (run->tried != HVD_GPU_ALLREDUCE_AUTO) {
        run->tried_ns = hvd_clock_ns(); /* registering is no part of the way's time */
    }
}

void hvd_gpu_block_give_up(struct hvd_gpu_run *run)
{
    for (int i = 0; i < 2; i++) {
        if (run->given_up[i] != NULL) {
            hvd_gpu_steps_add(&run->job.steps,
                              &(struct hvd_gpu_step){.kind = HVD_GPU_UNREGISTER,
                                                     .from = run->given_up[i]});
            run->given_up[i] = NULL;
        }
    }
}
