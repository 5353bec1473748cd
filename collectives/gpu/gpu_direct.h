/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce of one chunk in GPU memory among one rank of each node, by UCX on that memory
 * (GPUDirect RDMA):
 *
 *   scatter  the chunk is cut into one share per rank; each rank sends every other rank
 *            its share, and receives the others' copies of its own share
 *   add      a kernel adds up these copies, in order of rank
 *   gather   each rank sends the sum of its share to every other rank
 *
 * This moves the fewest bytes possible, in two rounds for any number of ranks. Each round
 * also costs a kernel launch and an event, so a ring or recursive halving would take
 * longer. Each element is summed by one rank, in one order, and rounded once: all ranks
 * get the same bits, those of hvd_reduce.
 *
 * No call waits. Several chunks may be in progress, each on its own channel. All ranks
 * use a channel for the same chunks in the same order. A message of the gather may arrive
 * while its receiver is still in the scatter: its bytes then stay with the sender until
 * the receiver is ready.
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_DIRECT_H
#define HVD_GPU_DIRECT_H

#include "collectives/gpu/gpu_module.h"

struct hvd_gpu_runtime;
struct hvd_team;

struct hvd_gpu_direct_allreduce;

/* A chunk. All ranks pass the same values, except for the addresses. */
struct hvd_gpu_direct_chunk {
    char *data; /* on the device: input, then the sum */
    char *scratch; /* on the device: hvd_gpu_direct_scratch_bytes(team, bytes) */
    int64_t bytes; /* a whole number of elements */
    enum hvd_dtype dtype;
    enum hvd_op op; /* an operation that HVD_GPU_SUM_UP supports */
};

/* number: selects the channel, 0 to 6. gpu and team are borrowed. The caller owns
 * *out. */
int hvd_gpu_direct_create(struct hvd_gpu_runtime *gpu, const struct hvd_team *team,
                          int number, struct hvd_gpu_direct_allreduce **out,
                          struct hvd_error *err);

/* Returns the size of the scratch memory for chunks of at most `bytes` bytes. */
int64_t hvd_gpu_direct_scratch_bytes(const struct hvd_team *team, int64_t bytes);

/* Begins the next chunk: posts the receives. The previous chunk must be done. */
void hvd_gpu_direct_begin(struct hvd_gpu_direct_allreduce *direct,
                          const struct hvd_gpu_direct_chunk *chunk);

/* Sends the shares. Call when the data is complete on the device. */
void hvd_gpu_direct_start(struct hvd_gpu_direct_allreduce *direct);
bool hvd_gpu_direct_has_started(const struct hvd_gpu_direct_allreduce *direct);

/* Returns 0 when `data` holds the sum and the chunk is done, HVD_INPROGRESS, or a
 * failure. Sets *moved if anything was done. */
int hvd_gpu_direct_progress(struct hvd_gpu_direct_allreduce *direct, bool *moved,
                            struct hvd_error *err);

/* Whether the launcher is still using the allreduce. */
bool hvd_gpu_direct_is_held(const struct hvd_gpu_direct_allreduce *direct);

/* Frees the allreduce; NULL is allowed. Do not call this while the launcher is using the
 * allreduce. If a chunk is in progress, the net must have been destroyed before. */
void hvd_gpu_direct_destroy(struct hvd_gpu_direct_allreduce *direct);

#endif
