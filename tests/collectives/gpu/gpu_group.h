/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of tensors on the GPU that are reduced over the ranks, in place. float32 values
 * are small integers that differ with rank, tensor and round, so all sums are exact. */
#ifndef GPU_GROUP_H
#define GPU_GROUP_H

#include <stdbool.h>

#include "collectives/hvd.h"

enum {
    GPU_GROUP_MOST = 8
};

struct gpu_group {
    const char *name; /* first part of each tensor's name; the tensor's number follows */
    int count;
    int64_t counts[GPU_GROUP_MOST]; /* may be lowered after gpu_group_open */
    float *memory[GPU_GROUP_MOST];
    float *values; /* on the host */
    void *stream;
};

/* Allocates memory for tensors with these numbers of elements; a failure ends the
 * process. */
struct gpu_group gpu_group_open(const char *name, const int64_t *counts, int count,
                                void *stream);

/* Frees the memory on the host. The memory on the GPU stays until the process ends. */
void gpu_group_close(struct gpu_group *group);

float gpu_group_value(int rank, int tensor, int round, int64_t i);

void gpu_group_fill(const struct gpu_group *group, int round);

/* Fills the tensors and reduces them as if they had this dtype; returns the status. */
int gpu_group_reduce(const struct gpu_group *group, int round, enum hvd_dtype dtype,
                     enum hvd_op op, double prescale, double postscale);

/* Whether each tensor is `factor` times the sum over the first `ranks` ranks; prints the
 * first difference. */
bool gpu_group_is_sum(const struct gpu_group *group, int round, int ranks, float factor);

#endif
