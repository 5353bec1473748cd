/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch of GPU tensors until all its work is launched.
 *
 *   rendezvous  once for a process set: gpu_rendezvous.h
 *
 * then by NCCL
 *   count       alltoall: how many rows each rank sends
 *   launch      gpu_launch.c
 * or through host memory
 *   fetch       copies to the host; the batch runs there as host tensors; then launch
 *               copies back
 * or, for an allreduce in chunks, by NCCL within the node or through host memory
 *   pipeline    gpu_pipeline.h
 *   launch      its last chunk
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_RUN_H
#define HVD_GPU_RUN_H

#include "collectives/gpu/gpu_runtime.h"

struct hvd_batch;
struct hvd_executor;
struct hvd_team;

struct hvd_gpu_run;

/* Creates the run of a batch. Borrows batch and team until destroy. The entries receive
 * memory allocated by the library, and their marks. The caller owns *out. */
int hvd_gpu_run_create(struct hvd_gpu_runtime *gpu, struct hvd_team *team,
                       struct hvd_batch *batch, struct hvd_gpu_run **out,
                       struct hvd_error *err);

/* Returns 0 when the batch is launched, HVD_INPROGRESS, or a failure after which the GPU
 * is unusable. Sets *moved if anything was done; work as in hvd_run_progress. */
int hvd_gpu_run_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                         struct hvd_error *err);

/* Makes the host stop accessing the tensors' memory. leaks: results on the host are never
 * freed. */
void hvd_gpu_run_forget(struct hvd_gpu_run *run, bool leaks);

/* If the batch is not launched, call hvd_gpu_stop first. NULL is allowed. */
void hvd_gpu_run_destroy(struct hvd_gpu_run *run);

/* The functions above as an executor for the teams; its context is the struct
 * hvd_gpu_runtime. */
extern const struct hvd_executor hvd_gpu_executor;

#endif
