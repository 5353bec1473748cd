/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce of one piece of device memory among the ranks of a team, one on each node,
 * by a network that reads and writes it where it is:
 *
 *   scatter  the piece is cut into as many shares as there are ranks; each rank sends
 *            every other its share, and gets all others' versions of its own
 *   add      a kernel adds these up, in order of rank
 *   gather   each rank sends its share of the sum to every other
 *
 * That is as many bytes as any allreduce has to move at least, and two rounds whatever the
 * number of ranks: a round costs a launch and an event besides the network, so that a ring
 * or halves of halves would wait longer. Each element is added up at one place, in one
 * order, and rounded once: all ranks get the same bits, those of hvd_reduce.
 *
 * No call waits. Exchanges of several pieces may be under way, each by a channel of its
 * own, which the ranks use for the same pieces in the same order. A gather's message may
 * come while its receiver still scatters: its bytes stay with the sender until then.
 *
 * Threads: one at a time (the engine's progress lock). */
#ifndef HVD_GPU_EXCHANGE_H
#define HVD_GPU_EXCHANGE_H

#include "collectives/execute/team.h"
#include "collectives/gpu/gpu_job.h"

struct hvd_gpu_exchange;

/* What is exchanged; the same on all ranks but for the addresses. */
struct hvd_gpu_exchanged {
    char *data; /* on the device: what is added up, and then the sum */
    char *room; /* on the device: hvd_gpu_exchange_room(team, bytes) */
    int64_t bytes; /* whole elements */
    enum hvd_dtype dtype;
    enum hvd_op op; /* as HVD_GPU_SUM_UP takes it */
};

/* number: of the channel, from 0 to 6. gpu and team are borrowed. The caller owns *out. */
int hvd_gpu_exchange_create(struct hvd_gpu *gpu, const struct hvd_team *team, int number,
                            struct hvd_gpu_exchange **out, struct hvd_error *err);

/* Bytes of device memory beside a piece of at most so many. */
int64_t hvd_gpu_exchange_room(const struct hvd_team *team, int64_t bytes);

/* The next piece, after the one before is done: from now on the others' shares may come. */
void hvd_gpu_exchange_begin(struct hvd_gpu_exchange *exchange,
                            const struct hvd_gpu_exchanged *exchanged);

/* When the device is done with data: this rank's shares go out. */
void hvd_gpu_exchange_start(struct hvd_gpu_exchange *exchange);
bool hvd_gpu_exchange_has_started(const struct hvd_gpu_exchange *exchange);

/* Returns 0 when the sum is in data, and nothing else is done there, HVD_INPROGRESS, or a
 * failure. Sets *moved if anything was done. */
int hvd_gpu_exchange_progress(struct hvd_gpu_exchange *exchange, bool *moved,
                              struct hvd_error *err);

bool hvd_gpu_exchange_is_held(
    const struct hvd_gpu_exchange *exchange); /* by the launcher */

/* NULL is fine; not while held, nor under way unless the net is gone. */
void hvd_gpu_exchange_destroy(struct hvd_gpu_exchange *exchange);

#endif
