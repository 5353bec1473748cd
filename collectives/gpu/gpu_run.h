/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch of GPU tensors until it is launched.
 *
 *   meet      once for a process set: the ranks show each other what they have of CUDA and NCCL,
 *             over hvd's own connections, and so decide alike how its tensors go
 *   count     alltoall: how many rows come from each
 *   launch    by NCCL
 * or
 *   fetch     to host memory; run, as tensors there; launch: back to the device
 * or, of an allreduce,
 *   pipe      in pieces, by NCCL within the node or not at all, else through host memory: gpu_pipe.h
 *   launch    the last of it
 *
 * Threads: one at a time (the engine's progress lock). */
#ifndef HVD_GPU_RUN_H
#define HVD_GPU_RUN_H

#include "collectives/execute/teams.h"
#include "collectives/gpu/gpu.h"

struct hvd_gpu_run;

/* batch and team are borrowed until destroy; the entries get what the library allocates, and
 * their marks. number: hvd_gpu_number of the batch. The caller owns *out. */
int hvd_gpu_run_create(struct hvd_gpu *gpu, struct hvd_team *team,
                       struct hvd_batch *batch, struct hvd_gpu_run **out,
                       struct hvd_error *err);

/* Returns 0 when the batch is launched, HVD_INPROGRESS, or a failure after which the GPU is
 * unusable. Sets *moved if anything was done; work as in hvd_run_progress. */
int hvd_gpu_run_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                         struct hvd_error *err);

/* What its tensors describe is not touched any more by the host. leaks: results on the host are
 * never freed. */
void hvd_gpu_run_forget(struct hvd_gpu_run *run, bool leaks);

/* After hvd_gpu_stop when it is not launched. NULL is fine. */
void hvd_gpu_run_destroy(struct hvd_gpu_run *run);

/* The functions above for the teams; their context is the struct hvd_gpu. */
extern const struct hvd_executor hvd_gpu_executor;

#endif
