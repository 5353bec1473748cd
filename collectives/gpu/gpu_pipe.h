/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce of GPU tensors in pieces, of which several are under way, through host memory or
 * without it:
 *
 *   reduce   COLLECT: the piece is moved together and added up within the node, by NCCL's
 *            reduce-scatter; each rank of the node has a part of it     } only where there is a
 *   fetch    IN: its part comes to pinned host memory                     communicator of the node;
 *   add      the hosts of the team add it up, over shared memory          else the fetched part is
 *            and the network                                              the whole piece, and it
 *   back     OUT: the sum goes to the device                              goes straight from and
 *   gather   COLLECT: NCCL's all-gather in the node; moved apart        } to the tensors
 *
 * Where the network reads and writes the device's memory, `exchange` (gpu_exchange.h) is in
 * place of fetch, add and back, for all pieces under way at a time.
 *
 * A piece waits for the one before it only where both need the same: a queue, or the team.
 *
 * Calls of NCCL on the COLLECT queue have to come in the same order on all ranks of a
 * node. With a window of 4 it is r0 r1 r2 r3 g0 r4 g1 r5 ... whatever comes when: after
 * each gather the next reduce follows at once, before anything is looked at again. A
 * gather is put on the stream when its part has come from the network, so it waits for
 * the gathers of the node's other ranks alone, and they for what the network brings,
 * which needs reduces only, that all nodes have put before, and of an exchange its sum, which
 * comes before the gather and waits for nobody on the device. So nobody waits in a circle.
 *
 * For the same reason the batch keeps its turn (gpu.h) until its last gather is on the
 * stream: no rank can know whether the others of its node have agreed on the next batch
 * when it puts a gather there. What overlaps are the pieces of a batch.
 *
 * Threads: one at a time (the engine's progress lock). */
#ifndef HVD_GPU_PIPE_H
#define HVD_GPU_PIPE_H

#include "collectives/execute/run.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/gpu/gpu_trace.h"

enum {
    HVD_GPU_WINDOW = 4, /* pieces under way */
};

struct hvd_gpu_pipe_config {
    struct hvd_gpu *gpu;
    struct hvd_batch *batch; /* borrowed; an allreduce */
    struct hvd_team *team; /* that adds up; borrowed, and runs nothing else meanwhile */
    struct hvd_proposal proposal; /* how: dtype, op, prescale, postscale */
    /* By kernels, where it is not 1 or dtype not the tensors': on the way into dtype, and
     * back. */
    double before;
    double after;
    uint32_t divisor; /* along with after, of integers; 0 and 1: none */
    struct hvd_gpu_comm *comm; /* of the node; NULL: nothing is added up on the device */
    bool is_direct; /* the parts are exchanged where they are; only with comm */
    int parts; /* ranks in comm, 1 without; */
    int part; /* this one is this of them */
    struct hvd_gpu_step reduction; /* how comm adds up */
    struct hvd_gpu_trace **trace; /* of the batch; borrowed */
};

struct hvd_gpu_pipe;

/* Begins nothing yet. The caller owns *out. */
int hvd_gpu_pipe_create(const struct hvd_gpu_pipe_config *config,
                        struct hvd_gpu_pipe **out, struct hvd_error *err);

/* Of all its tensors in dtype, also those that a joined rank does not have: the same on
 * all ranks. */
int64_t hvd_gpu_batch_bytes(const struct hvd_batch *batch, enum hvd_dtype dtype);

/* The most that a piece takes of each rank of the node. */
int64_t hvd_gpu_pipe_part_bytes(const struct hvd_team *team);

/* Returns 0 when everything is handed to the launcher, HVD_INPROGRESS, or a failure. work and
 * moved as in hvd_run_progress. */
int hvd_gpu_pipe_progress(struct hvd_gpu_pipe *pipe, int64_t *work, bool *moved,
                          struct hvd_error *err);

/* After that: returns 0 when all is on its stream, and then *end and *queue, borrowed.
 * Its memory goes with that mark. */
int hvd_gpu_pipe_end(struct hvd_gpu_pipe *pipe, struct hvd_gpu_mark **end,
                     enum hvd_gpu_queue *queue, struct hvd_error *err);

bool hvd_gpu_pipe_is_held(const struct hvd_gpu_pipe *pipe); /* by the launcher */
void hvd_gpu_pipe_destroy(struct hvd_gpu_pipe *pipe); /* NULL is fine; not while held */

#endif
