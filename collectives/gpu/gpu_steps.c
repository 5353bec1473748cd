/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of steps. */
#include "collectives/gpu/gpu_steps.h"

#include <stdlib.h>

#include "collectives/request/request.h"
#include "collectives/gpu/gpu_pool.h"

void hvd_gpu_steps_finish(struct hvd_gpu_steps *steps)
{
    for (int i = 0; i < steps->followed_count; i++) {
        hvd_refcount_drop(steps->followed[i]);
    }
    free(steps->followed);
    free(steps->steps);
    *steps = (struct hvd_gpu_steps){0};
}

void hvd_gpu_steps_add(struct hvd_gpu_steps *steps, const struct hvd_gpu_step *step)
{
    if (steps->count == steps->capacity) {
        int capacity = 2 * steps->capacity + 8;
        struct hvd_gpu_step *grown =
            realloc(steps->steps, (size_t)capacity * sizeof(grown[0]));

        if (grown == NULL) {
            steps->failed = true;
            return;
        }
        steps->steps = grown;
        steps->capacity = capacity;
    }
    steps->steps[steps->count++] = *step;
}

/* Makes room for `count` more marks. Returns false if memory is out. */
static bool make_place(struct hvd_gpu_steps *steps, int count)
{
    size_t wanted = (size_t)steps->followed_count + (size_t)count;
    struct hvd_refcount **grown =
        realloc(steps->followed, (wanted > 0 ? wanted : 1) * sizeof(grown[0]));

    if (grown == NULL) {
        steps->failed = true;
        return false;
    }
    steps->followed = grown;
    return true;
}

void hvd_gpu_steps_add_kind(struct hvd_gpu_steps *steps, enum hvd_gpu_step_kind kind)
{
    hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = kind});
}

void hvd_gpu_steps_add_copy(struct hvd_gpu_steps *steps, const void *from, void *to,
                            int64_t bytes)
{
    if (bytes > 0 && from != to) {
        hvd_gpu_steps_add(
            steps, &(struct hvd_gpu_step){
                       .kind = HVD_GPU_COPY, .from = from, .to = to, .count = bytes});
    }
}

void hvd_gpu_steps_add_poison(struct hvd_gpu_steps *steps, enum hvd_dtype dtype, void *to,
                              int64_t bytes)
{
    bool has_nan = dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 ||
                   dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;

    if (has_nan && bytes > 0) {
        hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){
                                     .kind = HVD_GPU_POISON,
                                     .to = to,
                                     .dtype = dtype,
                                     .count = bytes / (int64_t)hvd_dtype_bytes(dtype)});
    }
}

void hvd_gpu_steps_follow(struct hvd_gpu_steps *steps, struct hvd_entry *const *entries,
                          int count)
{
    const struct hvd_refcount *last = NULL;

    if (!make_place(steps, count)) {
        return;
    }
    for (int i = 0; i < count; i++) {
        /* all tensors of one call share one event */
        if (entries[i]->ready != NULL && entries[i]->ready != last) {
            struct hvd_gpu_mark *mark = (struct hvd_gpu_mark *)entries[i]->ready;

            last = entries[i]->ready;
            steps->followed[steps->followed_count++] = hvd_refcount_keep(&mark->refcount);
            hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = HVD_GPU_FOLLOW,
                                                            .event = mark->event});
        }
    }
}
