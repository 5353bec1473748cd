/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of tensors on the GPU that are reduced over the ranks. */
#include "tests/collectives/gpu/gpu_group.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/collectives/gpu/gpu_memory.h"

struct gpu_group gpu_group_open(const char *name, const int64_t *counts, int count,
                                void *stream)
{
    struct gpu_group group = {.name = name, .count = count, .stream = stream};
    int64_t most = 0;

    for (int i = 0; i < count; i++) {
        group.counts[i] = counts[i];
        group.memory[i] = gpu_memory((size_t)counts[i] * sizeof(float));
        most = counts[i] > most ? counts[i] : most;
    }
    group.values = malloc((size_t)most * sizeof(float));
    if (group.values == NULL) {
        fprintf(stderr, "# no memory\n");
        exit(1);
    }
    return group;
}

void gpu_group_close(struct gpu_group *group)
{
    free(group->values);
}

float gpu_group_value(int rank, int tensor, int round, int64_t i)
{
    return (float)((rank + 1) * (tensor + 1) + round + (int)(i % 7));
}

void gpu_group_fill(const struct gpu_group *group, int round)
{
    for (int tensor = 0; tensor < group->count; tensor++) {
        for (int64_t i = 0; i < group->counts[tensor]; i++) {
            group->values[i] = gpu_group_value(hvd_rank(), tensor, round, i);
        }
        gpu_copy(group->memory[tensor], group->values,
                 (size_t)group->counts[tensor] * sizeof(float), group->stream);
        gpu_finish(group->stream);
    }
}

int gpu_group_reduce(const struct gpu_group *group, int round, enum hvd_dtype dtype,
                     enum hvd_op op, double prescale, double postscale)
{
    char names[GPU_GROUP_MOST][32];
    struct hvd_tensor tensors[GPU_GROUP_MOST];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status;

    gpu_group_fill(group, round);
    for (int i = 0; i < group->count; i++) {
        snprintf(names[i], sizeof(names[i]), "%s %d", group->name, i);
        tensors[i] = gpu_tensor(names[i], dtype, &group->counts[i], 1, group->memory[i],
                                group->memory[i], group->stream);
    }
    status = hvd_allreduce_start(tensors, group->count, op, prescale, postscale,
                                 HVD_SET_GLOBAL, &request, &err);
    if (status == 0) {
        status = hvd_wait_on(request, group->stream, -1, &err);
    }
    if (status != 0) {
        fprintf(stderr, "# rank %d, round %d: %s\n", hvd_rank(), round, err.text);
    }
    hvd_request_free(request);
    return status;
}

static bool is_sum(const struct gpu_group *group, int tensor, int round, int ranks,
                   float factor)
{
    gpu_copy(group->values, group->memory[tensor],
             (size_t)group->counts[tensor] * sizeof(float), group->stream);
    gpu_finish(group->stream);
    for (int64_t i = 0; i < group->counts[tensor]; i++) {
        float sum = 0;

        for (int rank = 0; rank < ranks; rank++) {
            sum += gpu_group_value(rank, tensor, round, i);
        }
        if (group->values[i] != factor * sum) {
            fprintf(stderr, "# rank %d, round %d: element %lld of %s %d is %g, not %g\n",
                    hvd_rank(), round, (long long)i, group->name, tensor,
                    (double)group->values[i], (double)(factor * sum));
            return false;
        }
    }
    return true;
}

bool gpu_group_is_sum(const struct gpu_group *group, int round, int ranks, float factor)
{
    bool good = true;

    for (int tensor = 0; tensor < group->count; tensor++) {
        good = is_sum(group, tensor, round, ranks, factor) && good;
    }
    return good;
}
