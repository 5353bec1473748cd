/* SPDX-License-Identifier: Apache-2.0 */
/* The allreduce of one chunk in GPU memory among one rank of each node, by UCX on that
 * memory (GPUDirect RDMA):
 *
 *   scatter  the chunk has one share for each rank; a rank sends every other its share, and
 *            receives their copies of its own
 *   add      a kernel sums these copies, in order of rank
 *   gather   each rank sends the sum of its share to every other
 *
 * This moves the fewest bytes possible, in two rounds for any number of ranks. A round
 * costs a kernel launch and an event besides the network, so a ring or recursive halving
 * would take longer. Each element is summed by one rank, in one order, and rounded once:
 * all ranks get the same bits, those of hvd_reduce.
 *
 * No call waits. Several chunks may be in progress, each on a channel of its own, which
 * all ranks use for the same chunks in the same order. A message of the gather may arrive
 * while its receiver still scatters: its bytes stay with the sender until then.
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_DIRECT_H
#define HVD_GPU_DIRECT_H

#include "collectives/gpu/gpu_module.h"

struct hvd_gpu_runtime;
struct hvd_team;

struct hvd_gpu_direct_allreduce;

/* The chunk; the same on all ranks except for the addresses. */
struct hvd_gpu_direct_chunk {
    char *data; /* on the device: input, then the sum */
    char *scratch; /* on the device: hvd_gpu_direct_scratch_bytes(team, bytes) */
    int64_t bytes; /* a whole number of elements */
    enum hvd_dtype dtype;
    enum hvd_op op; /* as in HVD_GPU_SUM_UP */
};

/* number: of the channel, 0 to 6. gpu and team are borrowed. The caller owns *out. */
int hvd_gpu_direct_create(struct hvd_gpu_runtime *gpu, const struct hvd_team *team,
                          int number, struct hvd_gpu_direct_allreduce **out,
                          struct hvd_error *err);

/* Size of the scratch memory for chunks of at most so many bytes. */
int64_t hvd_gpu_direct_scratch_bytes(const struct hvd_team *team, int64_t bytes);

/* Begins the next chunk, after the previous one is done: posts the receives. */
void hvd_gpu_direct_begin(struct hvd_gpu_direct_allreduce *direct,
                          const struct hvd_gpu_direct_chunk *chunk);

/* The data is complete on the device: sends the shares. */
void hvd_gpu_direct_start(struct hvd_gpu_direct_allreduce *direct);
bool hvd_gpu_direct_has_started(const struct hvd_gpu_direct_allreduce *direct);

/* Returns 0 when data holds the sum and is no longer in use, HVD_INPROGRESS, or a
 * failure. Sets *moved if anything was done. */
int hvd_gpu_direct_progress(struct hvd_gpu_direct_allreduce *direct, bool *moved,
                            struct hvd_error *err);

/* whether the launcher uses it */
bool hvd_gpu_direct_is_held(const struct hvd_gpu_direct_allreduce *direct);

/* NULL is fine. Not while the launcher uses it. A chunk may be in progress only if the
 * net has been destroyed. */
void hvd_gpu_direct_destroy(struct hvd_gpu_direct_allreduce *direct);

#endif
