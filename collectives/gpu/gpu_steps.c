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

bool hvd_gpu_step_is_plain(const struct hvd_gpu_step *move)
{
    return move->factor == 1.0 && move->divisor <= 1 &&
           hvd_dtype_bytes(move->dtype) == hvd_dtype_bytes(move->to_dtype);
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

/* Adds a mark to those that are followed. A later mark on the same stream replaces it, or
 * the other way round: when the device has reached the later one, it has reached both.
 * `first`: where the marks of this call begin. */
static void add_followed(struct hvd_gpu_steps *steps, int first,
                         struct hvd_gpu_mark *mark)
{
    for (int i = first; i < steps->followed_count; i++) {
        struct hvd_gpu_mark *other = (struct hvd_gpu_mark *)steps->followed[i];

        if (other == mark || (mark->position.stream != 0 &&
                              other->position.stream == mark->position.stream)) {
            if (other->position.number < mark->position.number) {
                hvd_refcount_keep(&mark->refcount);
                steps->followed[i] = &mark->refcount;
                hvd_refcount_drop(&other->refcount);
            }
            return;
        }
    }
    steps->followed[steps->followed_count++] = hvd_refcount_keep(&mark->refcount);
}

void hvd_gpu_steps_follow(struct hvd_gpu_steps *steps, struct hvd_entry *const *entries,
                          int count)
{
    int first = steps->followed_count;

    if (!make_place(steps, count)) {
        return;
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->ready != NULL) {
            add_followed(steps, first, (struct hvd_gpu_mark *)entries[i]->ready);
        }
    }
    for (int i = first; i < steps->followed_count; i++) {
        const struct hvd_gpu_mark *mark = (struct hvd_gpu_mark *)steps->followed[i];

        hvd_gpu_steps_add(
            steps, &(struct hvd_gpu_step){.kind = HVD_GPU_FOLLOW, .event = mark->event});
    }
}
