/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a batch by NCCL: allocates its memory, makes its schedule and submits it. */
#include <stdlib.h>

#include "collectives/run/team.h"
#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/error.h"

int hvd_gpu_launch_submit(struct hvd_gpu_run *run, enum hvd_gpu_queue queue,
                          struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    hvd_gpu_trace_work(&run->trace, run->gpu, run->batch->header.kind, queue,
                       &run->job.work);
    return hvd_gpu_job_submit(run->gpu, &run->job, queue, comm, err);
}

bool hvd_gpu_launch_fits(const struct hvd_gpu_run *run)
{
    return run->set->comm != NULL &&
           hvd_gpu_schedule_fits(&run->batch->entries[0]->descriptor,
                                 run->team->layout->size, run->set->nccl_version,
                                 run->set->all_have_kernels);
}

int hvd_gpu_launch_allocate(struct hvd_gpu_run *run, struct hvd_entry *entry,
                            int64_t rows, char **memory, struct hvd_error *err)
{
    size_t bytes = (size_t)(rows * hvd_entry_row_bytes(entry));
    struct hvd_gpu_buffer *buffer;
    int status;

    entry->result_rows = rows;
    *memory = hvd_entry_find_room(entry);
    if (*memory != NULL || bytes == 0) {
        return 0;
    }
    status = hvd_gpu_buffer_take_near(run->gpu->pool, bytes, &buffer, err);
    if (status == 0) {
        entry->buffer = &buffer->refcount;
        entry->result = *memory = buffer->memory;
    }
    return status;
}

/* Makes sure that run->gpu->pack has at least `bytes` bytes. One buffer serves all
 * batches, because they follow each other on one stream. A buffer that is too small, or
 * that is pinned host memory although device memory may be available again, is replaced,
 * and freed once the batches that use it are done. */
static int find_pack(struct hvd_gpu_run *run, size_t bytes, struct hvd_error *err)
{
    struct hvd_gpu_buffer **pack = &run->gpu->pack;
    struct hvd_gpu_buffer *larger;
    int status;

    if (bytes == 0 || (*pack != NULL && (*pack)->bytes >= bytes &&
                       !hvd_gpu_buffer_is_tried_again(*pack))) {
        return 0;
    }
    if (*pack != NULL && (*pack)->bytes > bytes) {
        bytes = (*pack)->bytes;
    }
    status = hvd_gpu_buffer_take_near(run->gpu->pool, bytes, &larger, err);
    if (status != 0) {
        return status;
    }
    hvd_gpu_mark_hold(run->job.mark, pack);
    *pack = larger;
    return 0;
}

int hvd_gpu_launch_reserve(struct hvd_gpu_run *run, size_t bytes, struct hvd_error *err)
{
    struct hvd_gpu_buffer *buffer;
    int status;

    if (run->gpu->pack != NULL) {
        return 0;
    }
    status =
        hvd_gpu_buffer_take(run->gpu->pool, HVD_GPU_DEVICE_MEMORY, bytes, &buffer, err);
    if (status == 0) {
        run->gpu->pack = buffer;
    }
    return status == HVD_ERR_NOMEM ? 0 : status;
}

static int64_t sum_of(const int64_t *rows, int size)
{
    int64_t sum = 0;

    for (int i = 0; i < size; i++) {
        sum += rows[i];
    }
    return sum;
}

static int place_rows(struct hvd_gpu_run *run, struct hvd_gpu_schedule *schedule,
                      struct hvd_error *err)
{
    bool gets_rows =
        schedule->kind == HVD_KIND_ALLGATHER || schedule->kind == HVD_KIND_ALLTOALL ||
        (schedule->kind == HVD_KIND_GATHER && schedule->rank == schedule->root);

    return gets_rows ? hvd_gpu_launch_allocate(run, schedule->entries[0],
                                               sum_of(schedule->rows, schedule->size),
                                               &schedule->result, err)
                     : 0;
}

static struct hvd_gpu_schedule schedule_of(const struct hvd_gpu_run *run)
{
    const struct hvd_batch *batch = run->batch;
    int size = run->team->layout->size;
    bool is_alltoall = batch->header.kind == HVD_KIND_ALLTOALL;

    return (struct hvd_gpu_schedule){
        .kind = batch->header.kind,
        .entries = batch->entries,
        .count = (int)batch->header.count,
        .rank = run->team->rank,
        .size = size,
        .root = hvd_team_member(run->team, batch->entries[0]->descriptor.root),
        .sent = run->counts,
        .nccl_version = run->set->nccl_version,
        .has_kernels = run->gpu->pool->module->no_kernels(run->gpu->pool->device) == NULL,
        .all_have_kernels = run->set->all_have_kernels,
        .may_switch_add = run->set->may_switch_add,
        .rows = is_alltoall ? run->counts + size : batch->rows,
        .pack_below = run->set->pack_below,
    };
}

size_t hvd_gpu_launch_pack_bytes(const struct hvd_gpu_run *run)
{
    const struct hvd_gpu_schedule schedule = schedule_of(run);

    return hvd_gpu_schedule_pack_bytes(&schedule);
}

/* Finds memory for packed tensors: a window if there is one; if not, it is followed by
 * the scratch memory. */
static int place_schedule(struct hvd_gpu_run *run, struct hvd_gpu_schedule *schedule,
                          struct hvd_error *err)
{
    size_t bytes = hvd_gpu_schedule_pack_bytes(schedule);
    char *window = bytes > 0 ? hvd_gpu_set_window(run->set, bytes) : NULL;
    size_t plain_bytes = window == NULL ? bytes : 0;
    int status =
        find_pack(run, plain_bytes + hvd_gpu_schedule_scratch_bytes(schedule), err);

    if (status == 0) {
        char *memory = run->gpu->pack != NULL ? run->gpu->pack->memory : NULL;

        schedule->pack = window != NULL ? window : memory;
        schedule->scratch = memory == NULL ? NULL : memory + plain_bytes;
    }
    return status;
}

int hvd_gpu_launch(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_schedule schedule = schedule_of(run);
    int status = hvd_gpu_mark_create(run->gpu->pool, &run->job.mark, err);

    if (status != 0) {
        return status;
    }
    if (hvd_gpu_inbox_fits(run)) {
        hvd_gpu_steps_follow(&run->job.steps, schedule.entries, schedule.count);
        hvd_gpu_inbox_steps(run, &run->job.steps);
        return hvd_gpu_launch_submit(run, HVD_GPU_COLLECT, run->set->comm, err);
    }
    status = place_schedule(run, &schedule, err);
    if (status != 0) {
        return status;
    }
    status = place_rows(run, &schedule, err);
    if (status != 0) {
        return status;
    }
    hvd_gpu_steps_follow(&run->job.steps, schedule.entries, schedule.count);
    hvd_gpu_schedule_steps(&schedule, &run->job.steps);
    return hvd_gpu_launch_submit(run, HVD_GPU_COLLECT, run->set->comm, err);
}

/* --- alltoall: the rows from each rank --- */

int hvd_gpu_alltoall_count(struct hvd_gpu_run *run, struct hvd_error *err)
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
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name, run->counts,
                                     size * sizeof(run->counts[0]), err);
}

int hvd_gpu_alltoall_count_end(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_entry *entry = run->batch->entries[0];
    int size = run->team->layout->size;
    const int64_t *all = hvd_gpu_host_gather_result(&run->gather);

    entry->received = calloc((size_t)size, sizeof(entry->received[0]));
    if (entry->received == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for splits");
    }
    for (int i = 0; i < size; i++) {
        run->counts[size + i] = all[(size_t)i * (size_t)size + (size_t)run->team->rank];
        entry->received[i] = (int32_t)run->counts[size + i];
    }
    hvd_gpu_host_gather_end(&run->gather);
    return 0;
}
