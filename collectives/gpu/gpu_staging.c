/* SPDX-License-Identifier: Apache-2.0 */
/* The path through host memory, for collectives that NCCL cannot do and for sets without
 * NCCL: tensors are copied to host memory, processed as host tensors, and copied back; an
 * allreduce goes in chunks (gpu_pipeline.h). */
#include <stdlib.h>
#include <string.h>

#include "collectives/run/run.h"
#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/error.h"

static const size_t alignment = 64;

/* The copy of a tensor in host memory. The memory is pinned: copies from other memory
 * would make the launcher, and thus the collectives of all sets, wait until the device
 * gets to the copy. */
struct hvd_gpu_shadow {
    struct hvd_entry entry; /* first member: the run receives a pointer to it */
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_buffer *room; /* memory for the entry's result, or NULL */
    struct hvd_error problem; /* why there is no memory for the result */
};

static int allocate_result(struct hvd_entry *entry, size_t bytes)
{
    struct hvd_gpu_shadow *shadow = (struct hvd_gpu_shadow *)entry;
    int status = hvd_gpu_buffer_take(shadow->pool, HVD_GPU_HOST_MEMORY, bytes,
                                     &shadow->room, &shadow->problem);

    entry->result = status == 0 ? shadow->room->memory : NULL;
    return status;
}

static size_t align_bytes(int64_t bytes)
{
    return ((size_t)bytes + alignment - 1) / alignment * alignment;
}

static bool is_root(const struct hvd_gpu_run *run, const struct hvd_entry *entry)
{
    return entry->descriptor.root == run->gpu->config.boot->rank;
}

/* Returns the size of the host buffer for the input. Most collectives also leave their
 * result in it. */
static int64_t input_bytes(const struct hvd_gpu_run *run, const struct hvd_entry *entry)
{
    bool is_none = entry->is_zeros ||
                   (run->batch->header.kind == HVD_KIND_SCATTER && !is_root(run, entry));

    return is_none ? 0 : hvd_descriptor_bytes(&entry->descriptor);
}

/* Whether the input is copied: broadcast and scatter use the root's input only. */
static bool is_fetched(const struct hvd_gpu_run *run, const struct hvd_entry *entry)
{
    return input_bytes(run, entry) > 0 &&
           (run->batch->header.kind != HVD_KIND_BROADCAST || is_root(run, entry));
}

/* Whether the result gets host memory of its own. */
static bool is_apart(const struct hvd_gpu_run *run)
{
    return run->batch->header.kind == HVD_KIND_REDUCESCATTER ||
           run->batch->header.kind == HVD_KIND_SCATTER;
}

/* Whether the number of rows of the result is known only after the run. */
static bool gets_rows(const struct hvd_gpu_run *run)
{
    return hvd_kind_has_rows(run->batch->header.kind) ||
           run->batch->header.kind == HVD_KIND_ALLTOALL;
}

/* Returns the bytes of the caller's output; 0 for collectives whose number of rows is
 * known only at the end. */
static int64_t output_bytes(const struct hvd_gpu_run *run, const struct hvd_entry *entry)
{
    int size = run->team->layout->size, rank = run->team->rank;

    switch (run->batch->header.kind) {
    case HVD_KIND_ALLGATHER:
    case HVD_KIND_ALLTOALL:
    case HVD_KIND_GATHER:
        return 0;
    case HVD_KIND_REDUCE:
        return is_root(run, entry) ? input_bytes(run, entry) : 0;
    case HVD_KIND_REDUCESCATTER:
    case HVD_KIND_SCATTER:
        return hvd_entry_share(entry, size, rank).rows * hvd_entry_row_bytes(entry);
    default:
        return input_bytes(run, entry);
    }
}

static int make_shadows(struct hvd_gpu_run *run, struct hvd_error *err)
{
    size_t count = (size_t)run->batch->header.count, bytes = 0;
    int status;

    run->staging.shadows = calloc(count, sizeof(run->staging.shadows[0]));
    run->staging.shadow_list = calloc(count, sizeof(run->staging.shadow_list[0]));
    if (run->staging.shadows == NULL || run->staging.shadow_list == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a batch");
    }
    for (size_t i = 0; i < count; i++) {
        const struct hvd_entry *entry = run->batch->entries[i];

        bytes += align_bytes(input_bytes(run, entry));
        bytes += is_apart(run) ? align_bytes(output_bytes(run, entry)) : 0;
    }
    status = hvd_gpu_buffer_take(run->gpu->pool, HVD_GPU_HOST_MEMORY,
                                 bytes > 0 ? bytes : 1, &run->staging.host, err);
    if (status != 0) {
        return status;
    }
    bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hvd_entry *entry = run->batch->entries[i];
        struct hvd_entry *shadow = &run->staging.shadows[i].entry;

        run->staging.shadows[i].pool = run->gpu->pool;
        *shadow = (struct hvd_entry){.descriptor = entry->descriptor,
                                     .splits = entry->splits,
                                     .split_count = entry->split_count,
                                     .allocate = allocate_result,
                                     .is_zeros = entry->is_zeros};
        shadow->descriptor.device = HVD_DEVICE_CPU;
        shadow->input = run->staging.host->memory + bytes;
        bytes += align_bytes(input_bytes(run, entry));
        shadow->output =
            is_apart(run) ? run->staging.host->memory + bytes : (char *)shadow->input;
        bytes += is_apart(run) ? align_bytes(output_bytes(run, entry)) : 0;
        run->staging.shadow_list[i] = shadow;
    }
    return 0;
}

/* Waits for the events of the inputs even if nothing is copied: before the output is
 * written, the caller's stream must have finished with it. */
int hvd_gpu_staging_fetch(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int count = (int)run->batch->header.count;
    int status = make_shadows(run, err);

    if (status != 0) {
        return status;
    }
    hvd_gpu_steps_follow(&run->job.steps, run->batch->entries, count);
    for (int i = 0; i < count; i++) {
        const struct hvd_entry *entry = run->batch->entries[i];
        const struct hvd_gpu_step fetch = {.kind = HVD_GPU_COPY,
                                           .from = entry->input,
                                           .to =
                                               (void *)run->staging.shadow_list[i]->input,
                                           .count = input_bytes(run, entry)};

        if (is_fetched(run, entry)) {
            hvd_gpu_steps_add(&run->job.steps, &fetch);
        }
    }
    return hvd_gpu_launch_submit(run, HVD_GPU_IN, NULL, err);
}

int hvd_gpu_staging_run(struct hvd_gpu_run *run, struct hvd_error *err)
{
    return hvd_run_create(run->team, &run->batch->header, run->staging.shadow_list,
                          run->batch->rows, &run->staging.run, err);
}

int hvd_gpu_staging_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err)
{
    int status = hvd_run_progress(run->staging.run, work, moved);

    if (status == 0) {
        hvd_run_destroy(run->staging.run);
        run->staging.run = NULL;
    }
    for (int64_t i = 0; status < 0 && i < run->count; i++) {
        if (run->staging.shadows[i].problem.status != 0) {
            return hvd_fail(err, status, "%s", run->staging.shadows[i].problem.text);
        }
    }
    return status >= 0 ? status : hvd_fail(err, status, "%s", hvd_status_name(status));
}

/* Adds a copy to device memory of the rows that the run has placed on the host. */
static int move_result(struct hvd_gpu_run *run, struct hvd_entry *entry,
                       struct hvd_gpu_shadow *shadow, struct hvd_error *err)
{
    char *to;
    int status = hvd_gpu_launch_allocate(run, entry, shadow->entry.result_rows, &to, err);

    entry->received = shadow->entry.received;
    shadow->entry.received = NULL;
    if (status != 0 || shadow->room == NULL) {
        return status;
    }
    hvd_gpu_steps_add(&run->job.steps,
                      &(struct hvd_gpu_step){.kind = HVD_GPU_COPY,
                                             .from = shadow->entry.result,
                                             .to = to,
                                             .count = shadow->entry.result_rows *
                                                      hvd_entry_row_bytes(entry)});
    hvd_gpu_mark_hold(run->job.mark, &shadow->room);
    return 0;
}

int hvd_gpu_staging_return(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int status = hvd_gpu_mark_create(run->gpu->pool, &run->job.mark, err);

    for (int64_t i = 0; status == 0 && i < run->batch->header.count; i++) {
        struct hvd_entry *entry = run->batch->entries[i];
        const struct hvd_gpu_step back = {.kind = HVD_GPU_COPY,
                                          .from = run->staging.shadow_list[i]->output,
                                          .to = entry->output,
                                          .count = output_bytes(run, entry)};

        if (back.count > 0) {
            hvd_gpu_steps_add(&run->job.steps, &back);
        }
        if (gets_rows(run)) {
            status = move_result(run, entry, &run->staging.shadows[i], err);
        }
    }
    if (status != 0) {
        return status;
    }
    hvd_gpu_mark_hold(run->job.mark, &run->staging.host);
    return hvd_gpu_launch_submit(run, HVD_GPU_OUT, NULL, err);
}

int hvd_gpu_staging_pipeline(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_descriptor *descriptor = &run->batch->entries[0]->descriptor;
    const struct hvd_gpu_pipeline_config config = {
        .gpu = run->gpu,
        .batch = run->batch,
        .team = run->team,
        .reduction = {.dtype = descriptor->dtype, .before = 1.0, .after = 1.0},
        .descriptor = *descriptor,
        .local_size = 1,
        .trace = &run->trace,
    };

    return hvd_gpu_pipeline_create(&config, &run->pipeline, err);
}

/* leaks: another rank may still write to the memory, so it is not freed. */
void hvd_gpu_staging_forget(struct hvd_gpu_run *run, bool leaks)
{
    for (int64_t i = 0; leaks && run->staging.shadows != NULL && i < run->count; i++) {
        run->staging.shadows[i].room = NULL;
    }
    if (leaks) {
        run->staging.host = NULL;
    }
    if (run->staging.run != NULL) {
        hvd_run_forget(run->staging.run);
    }
}

void hvd_gpu_staging_finish(struct hvd_gpu_run *run)
{
    hvd_run_destroy(run->staging.run);
    for (int64_t i = 0; run->staging.shadows != NULL && i < run->count; i++) {
        hvd_gpu_buffer_drop(run->staging.shadows[i].room);
        free(run->staging.shadows[i].entry.received);
    }
    free(run->staging.shadows);
    free(run->staging.shadow_list);
    hvd_gpu_buffer_drop(run->staging.host);
}
