/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a batch by NCCL: a list of steps for the device. Pure.
 *
 *   small tensors   packed, reduced by one allreduce, and unpacked; a kernel or copies
 *                   pack and unpack
 *   large tensors   one allreduce each, in place, in the same group
 *
 * Kernels apply the factors that NCCL does not take: see gpu_reduction.h.
 *
 * All ranks make the same NCCL calls in the same order: the calls depend on what the
 * ranks have agreed on, not on the tensors of this rank. */
#ifndef HVD_GPU_SCHEDULE_H
#define HVD_GPU_SCHEDULE_H

#include <stdbool.h>

#include "collectives/request/batch.h"
#include "collectives/gpu/gpu_steps.h"
#include "collectives/gpu/gpu_reduction.h"

struct hvd_gpu_schedule {
    enum hvd_kind kind;
    struct hvd_entry *const *entries; /* [count] */
    int count;
    int rank; /* number of this rank in the team */
    int size;
    int root; /* broadcast, reduce, gather, scatter: number of the root in the team */
    const int64_t *sent; /* [size] alltoall: rows to each rank */
    /* [size] alltoall: rows from each rank; allgather and gather: rows of each rank */
    const int64_t *rows;
    char *result; /* allgather, alltoall, gather at the root: where the rows go */
    int nccl_version;
    bool has_kernels; /* this rank's device has kernels for HVD_GPU_MOVE */
    bool all_have_kernels; /* all ranks have such kernels */
    /* A switch between the GPUs can add, but not multiply (NVLink SHARP). If all ranks
     * have kernels, these then also scale before an allreduce in place, at the cost of
     * another pass over the tensor. */
    bool may_switch_add;
    /* Size in bytes: a tensor below it is packed, if the batch has several tensors. The
     * same on all ranks. */
    int64_t pack_below;
    char *pack; /* hvd_gpu_schedule_pack_bytes bytes of device memory */
    char *scratch; /* hvd_gpu_schedule_scratch_bytes bytes of device memory */
};

/* Whether NCCL, with the kernels, can do this collective as hvd.h specifies. */
bool hvd_gpu_schedule_fits(const struct hvd_descriptor *descriptor, int size,
                           int nccl_version, bool all_have_kernels);

/* pack_bytes returns the device memory needed for packed or converted tensors of an
 * allreduce, which is the same on all ranks. scratch_bytes returns the rest. */
size_t hvd_gpu_schedule_pack_bytes(const struct hvd_gpu_schedule *schedule);
size_t hvd_gpu_schedule_scratch_bytes(const struct hvd_gpu_schedule *schedule);

/* Appends the steps; see steps->failed. */
void hvd_gpu_schedule_steps(const struct hvd_gpu_schedule *schedule,
                            struct hvd_gpu_steps *steps);

#endif
