/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch of GPU tensors comes to for NCCL: a list of steps that one can read. Pure.
 *
 *   small tensors   moved together, one allreduce, moved back: by a kernel, or by copies
 *   large ones      an allreduce each, in the same group, where they are
 *
 * Factors that NCCL does not take are a kernel's, on the way: see gpu_way.h.
 *
 * All ranks plan the same calls of NCCL in the same order: that goes by what they have
 * agreed on, not by what this rank has. */
#ifndef HVD_GPU_PLAN_H
#define HVD_GPU_PLAN_H

#include <stdbool.h>

#include "collectives/agreement/batch.h"
#include "collectives/gpu/gpu_steps.h"
#include "collectives/gpu/gpu_way.h"

struct hvd_gpu_plan {
    enum hvd_kind kind;
    struct hvd_entry *const *entries; /* [count], what the library allocates is there */
    int count;
    int rank; /* of this process, in the team */
    int size;
    int root; /* broadcast, in the team */
    const int64_t *sent; /* [size] rows: alltoall */
    const int64_t *rows; /* [size] rows that come: alltoall; of each rank: allgather */
    int nccl_version;
    bool has_kernels; /* of this rank's device: HVD_GPU_MOVE can be done */
    bool
        all_have_kernels; /* and of all others: NCCL may get what only kernels can make */
    /* Of several tensors those of fewer bytes are small; the same on all ranks. */
    int64_t pack_below;
    char *pack; /* hvd_gpu_plan_pack bytes of device memory */
    char *room; /* hvd_gpu_plan_room bytes of it */
};

/* Whether this NCCL, with the kernels, does this reduction as it is promised in hvd.h;
 * what only moves it can. */
bool hvd_gpu_plan_fits(const struct hvd_proposal *proposal, int size, int nccl_version,
                       bool all_have_kernels);

/* As NCCL has to be told; addresses and count are missing. */
struct hvd_gpu_step hvd_gpu_plan_reduction(const struct hvd_gpu_way *way,
                                           enum hvd_gpu_step_kind kind);

/* Bytes of device memory: of an allreduce for what is moved together, or does not stay in its type,
 * the same on all ranks; and for all else. */
size_t hvd_gpu_plan_pack(const struct hvd_gpu_plan *plan);
size_t hvd_gpu_plan_room(const struct hvd_gpu_plan *plan);

/* Appends the steps; see steps->failed. */
void hvd_gpu_plan_steps(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps);

#endif
