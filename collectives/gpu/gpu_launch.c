/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of GPU tensors by NCCL: its memory, its plan, and off it goes. */
#include <stdlib.h>

#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/error.h"

int hvd_gpu_run_submit(struct hvd_gpu_run *run, enum hvd_gpu_queue queue,
                       struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    hvd_gpu_trace_work(&run->trace, run->gpu, run->batch->header.kind, queue,
                       &run->job.work);
    return hvd_gpu_job_submit(run->gpu, &run->job, queue, comm, err);
}

bool hvd_gpu_run_fits(const struct hvd_gpu_run *run)
{
    return run->peers->comm != NULL &&
           hvd_gpu_plan_fits(&run->batch->entries[0]->proposal, run->team->layout->size,
                             run->peers->nccl_version, run->peers->all_have_kernels);
}

int hvd_gpu_run_allocate(struct hvd_gpu_run *run, struct hvd_entry *entry, int64_t rows,
                         struct hvd_error *err)
{
    size_t bytes = (size_t)(rows * hvd_entry_row_bytes(entry));
    struct hvd_gpu_room *room;
    int status;

    entry->result_rows = rows;
    if (bytes == 0) {
        return 0;
    }
    status = hvd_gpu_room_take(run->gpu->pool, HVD_GPU_DEVICE_MEMORY, bytes, &room, err);
    if (status == 0) {
        entry->room = &room->refcount;
        entry->result = room->memory;
    }
    return status;
}

/* One buffer serves all batches, for they follow each other on its stream. One
 * that is too small goes with the batch that replaces it, which is behind all that use
 * it. */
static int find_pack(struct hvd_gpu_run *run, size_t bytes, struct hvd_error *err)
{
    struct hvd_gpu_room **pack = &run->gpu->pack;
    struct hvd_gpu_room *larger;
    int status;

    if (bytes == 0 || (*pack != NULL && (*pack)->bytes >= bytes)) {
        return 0;
    }
    status =
        hvd_gpu_room_take(run->gpu->pool, HVD_GPU_DEVICE_MEMORY, bytes, &larger, err);
    if (status != 0) {
        return status;
    }
    if (*pack != NULL) {
        (*pack)->next = run->job.mark->rooms;
        run->job.mark->rooms = *pack;
    }
    *pack = larger;
    return 0;
}

static int64_t sum_of(const int64_t *rows, int size)
{
    int64_t sum = 0;

    for (int i = 0; i < size; i++) {
        sum += rows[i];
    }
    return sum;
}

static int allocate_result(struct hvd_gpu_run *run, const int64_t *rows,
                           struct hvd_error *err)
{
    bool is_ours = run->batch->header.kind == HVD_KIND_ALLGATHER ||
                   run->batch->header.kind == HVD_KIND_ALLTOALL;

    return is_ours ? hvd_gpu_run_allocate(run, run->batch->entries[0],
                                          sum_of(rows, run->team->layout->size), err)
                   : 0;
}

struct hvd_gpu_plan hvd_gpu_run_plan(const struct hvd_gpu_run *run)
{
    const struct hvd_batch *batch = run->batch;
    int size = run->team->layout->size;
    bool is_alltoall = batch->header.kind == HVD_KIND_ALLTOALL;

    return (struct hvd_gpu_plan){
        .kind = batch->header.kind,
        .entries = batch->entries,
        .count = (int)batch->header.count,
        .rank = run->team->rank,
        .size = size,
        .root = hvd_team_member(run->team, batch->entries[0]->proposal.root),
        .sent = run->counts,
        .nccl_version = run->peers->nccl_version,
        .has_kernels = run->gpu->pool->module->no_kernels(run->gpu->pool->device) == NULL,
        .all_have_kernels = run->peers->all_have_kernels,
        .rows = is_alltoall ? run->counts + size : batch->rows,
        .pack_below = run->peers->pack_below,
    };
}

/* Shares out the memory that find_pack has found. */
static void place(const struct hvd_gpu_run *run, struct hvd_gpu_plan *plan)
{
    const struct hvd_gpu_room *pack = run->gpu->pack;
    char *memory = pack != NULL ? pack->memory : NULL;

    plan->pack = memory;
    plan->room = memory == NULL ? NULL : memory + hvd_gpu_plan_pack(plan);
}

int hvd_gpu_launch(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_plan plan = hvd_gpu_run_plan(run);
    size_t bytes = hvd_gpu_plan_room(&plan) + hvd_gpu_plan_pack(&plan);
    int status = hvd_gpu_mark_create(run->gpu->pool, &run->job.mark, err);

    status = status != 0 ? status : find_pack(run, bytes, err);
    status = status != 0 ? status : allocate_result(run, plan.rows, err);
    if (status != 0) {
        return status;
    }
    place(run, &plan);
    hvd_gpu_steps_follow(&run->job.steps, plan.entries, plan.count);
    hvd_gpu_plan_steps(&plan, &run->job.steps);
    return hvd_gpu_run_submit(run, HVD_GPU_COLLECT, run->peers->comm, err);
}

/* --- alltoall: how many rows come --- */

int hvd_gpu_count(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_entry *entry = run->batch->entries[0];
    size_t size = (size_t)run->team->layout->size;

    run->counts = calloc(2 * size, sizeof(run->counts[0]));
    if (run->counts == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for splits");
    }
    for (size_t i = 0; i < size; i++) {
        run->counts[i] = entry->splits[i];
    }
    return hvd_gpu_run_gather(run, run->counts, size * sizeof(run->counts[0]), err);
}

int hvd_gpu_count_end(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_entry *entry = run->batch->entries[0];
    int size = run->team->layout->size;
    const int64_t *all = run->gathered.result;

    entry->received = calloc((size_t)size, sizeof(entry->received[0]));
    if (entry->received == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for splits");
    }
    for (int i = 0; i < size; i++) {
        run->counts[size + i] = all[(size_t)i * (size_t)size + (size_t)run->team->rank];
        entry->received[i] = (int32_t)run->counts[size + i];
    }
    hvd_gpu_run_end_gather(run);
    return 0;
}
