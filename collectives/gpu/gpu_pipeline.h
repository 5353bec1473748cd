/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce of GPU tensors in chunks, several of which are in progress:
 *
 *   reduce   COLLECT: packs the chunk; NCCL's reduce-scatter within the node gives each
 *            of its ranks the sum of one shard
 *   fetch    IN: copies the shard to pinned host memory
 *   add      the hosts of the team sum it, over shared memory and the network
 *   back     OUT: copies the sum to the device
 *   gather   COLLECT: NCCL's all-gather within the node; the next launch unpacks the
 *            chunk
 *
 * Without a node communicator there is no reduce and no gather: fetch copies from the
 * tensors, back copies to them, and the shard is the whole chunk. If UCX takes GPU
 * memory, gpu_direct.h replaces fetch, add and back, for all chunks in progress at once.
 *
 * A chunk waits for the one before it only if both need the same queue or team.
 *
 * All ranks of a node must call NCCL on the COLLECT queue in the same order. With a
 * window of 4 this is r0 r1 (r2 r3) (g0 r4) (g1 r5) ..., no matter when data arrives;
 * those in parentheses are one launch. So a batch of n chunks, 4 or more, takes n + 3
 * launches of NCCL, and about as many kernels. Each launch costs the host tens of
 * microseconds.
 *
 * A gather is launched when its shard has arrived from the network. So it waits only for
 * the gathers of the node's other ranks. These gathers wait for the network, which needs
 * reduces that all nodes have launched before. There is no cycle. The same holds with
 * gpu_direct.h, whose kernel precedes the gather and waits for no other rank.
 *
 * For the same reason the batch keeps its turn (gpu_runtime.h) until its last gather is
 * launched: a rank cannot know whether the other ranks of its node, when they launch a
 * gather, have already agreed on the next batch. Only chunks of one batch overlap.
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_PIPELINE_H
#define HVD_GPU_PIPELINE_H

#include "collectives/gpu/gpu_reduction.h"
#include "collectives/request/descriptor.h"

struct hvd_gpu_trace;
struct hvd_gpu_runtime;
struct hvd_gpu_mark;
struct hvd_batch;
struct hvd_team;

enum {
    HVD_GPU_WINDOW = 4, /* chunks in progress */
};

struct hvd_gpu_pipeline_config {
    struct hvd_gpu_runtime *gpu;
    struct hvd_batch *batch; /* an allreduce; borrowed */
    /* reduces the shards; borrowed, and reserved for this pipeline */
    struct hvd_team *team;
    /* how kernels convert the tensors to the type of the shards and back, and how comm
     * reduces the shards */
    struct hvd_gpu_reduction reduction;
    /* how the team reduces the shards: dtype, op, prescale, postscale */
    struct hvd_descriptor descriptor;
    struct hvd_gpu_comm *comm; /* the node's communicator, or NULL */
    bool is_direct; /* uses gpu_direct.h; requires comm */
    int local_size; /* ranks of comm; 1 without comm */
    int local_rank; /* this rank in comm */
    struct hvd_gpu_trace **trace; /* trace of the batch; borrowed */
};

struct hvd_gpu_pipeline;

/* Creates a pipeline without starting it. The caller owns *out. */
int hvd_gpu_pipeline_create(const struct hvd_gpu_pipeline_config *config,
                            struct hvd_gpu_pipeline **out, struct hvd_error *err);

/* Returns the largest shard size: the part of a chunk per rank of the node. */
int64_t hvd_gpu_pipeline_shard_bytes(const struct hvd_team *team);

/* Returns 0 when all work has been submitted to the launcher, HVD_INPROGRESS, or a
 * failure. work and moved are as in hvd_run_progress. */
int hvd_gpu_pipeline_progress(struct hvd_gpu_pipeline *pipeline, int64_t *work,
                              bool *moved, struct hvd_error *err);

/* Call when hvd_gpu_pipeline_progress has returned 0. Returns 0 when all work is on its
 * stream. Then *end is the mark of its end, borrowed, and *queue the queue of that mark.
 * The pipeline's memory is released when the device reaches the mark. */
int hvd_gpu_pipeline_end(struct hvd_gpu_pipeline *pipeline, struct hvd_gpu_mark **end,
                         enum hvd_gpu_queue *queue, struct hvd_error *err);

/* Whether the launcher is still using the pipeline. */
bool hvd_gpu_pipeline_is_held(const struct hvd_gpu_pipeline *pipeline);
/* NULL is allowed. Do not call this while the launcher is using it. */
void hvd_gpu_pipeline_destroy(struct hvd_gpu_pipeline *pipeline);

#endif
