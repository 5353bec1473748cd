/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of steps. */
#ifndef HVD_GPU_STEPS_H
#define HVD_GPU_STEPS_H

#include "collectives/gpu/gpu_module.h"

struct hvd_refcount;
struct hvd_entry;

/* Zeroed when empty. */
struct hvd_gpu_steps {
    struct hvd_gpu_step *steps;
    int count;
    int capacity;
    bool failed; /* memory ran out */
    struct hvd_refcount **followed; /* [followed_count] marks that the steps own */
    int followed_count;
};

void hvd_gpu_steps_finish(struct hvd_gpu_steps *steps);
void hvd_gpu_steps_add(struct hvd_gpu_steps *steps, const struct hvd_gpu_step *step);

/* kind: GROUP or GROUP_END. Copies of no bytes, or onto themselves, are left out. */
void hvd_gpu_steps_add_kind(struct hvd_gpu_steps *steps, enum hvd_gpu_step_kind kind);
void hvd_gpu_steps_add_copy(struct hvd_gpu_steps *steps, const void *from, void *to,
                            int64_t bytes);

/* Whether a move leaves all bits as they are, so that a copy can replace it. */
bool hvd_gpu_step_is_plain(const struct hvd_gpu_step *move);

/* Adds an HVD_GPU_POISON step for the result of a collective if the type is a float. */
void hvd_gpu_steps_add_poison(struct hvd_gpu_steps *steps, enum hvd_dtype dtype, void *to,
                              int64_t bytes);

/* Makes later steps wait for the inputs of the entries: for the last one of each stream,
 * if the driver tells streams apart. The steps keep references to the
 * marks: after a failure the launcher may reach a step when the entries have ended. */
void hvd_gpu_steps_follow(struct hvd_gpu_steps *steps, struct hvd_entry *const *entries,
                          int count);

#endif
