/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a replay: its batches, dealt out to lanes that run theirs in turn, and what each of them
 * still lacks on this rank. Pure. */
#ifndef HVD_REPLAY_ORDER_H
#define HVD_REPLAY_ORDER_H

#include <stdbool.h>

#include "collectives/agreement/message.h"
#include "collectives/agreement/tensor_cache.h"

enum {
    HVD_REPLAY_LANES = 2 /* QUICK and BULK */
};

struct hvd_batch;

struct hvd_replay_tensor {
    struct hvd_cached_tensor *cached;
    struct hvd_replay_batch *next; /* that has it after this one; may be this one */
};

struct hvd_replay_batch {
    enum hvd_lane lane;
    struct hvd_replay_tensor *tensors; /* [count] */
    size_t count;
    size_t missing; /* of them this rank has not submitted */
    size_t anew; /* of them it has described differently */
};

struct hvd_replay_lane {
    struct hvd_replay_batch **batches; /* [count], to run in turn */
    size_t count;
    uint64_t started;
    struct hvd_batch *running;
};

struct hvd_replay_order {
    struct hvd_replay_batch *batches; /* [count] */
    size_t count;
    size_t tensors; /* of all batches */
    struct hvd_replay_lane lanes[HVD_REPLAY_LANES];
};

/* Reads an order of so many batches, whose tensors are in the cache, in the place of the one before.
 * position: of the message. Returns 0, HVD_ERR_NOMEM or HVD_ERR_NET. */
int hvd_replay_order_read(struct hvd_replay_order *order, struct hvd_tensor_cache *cache,
                          uint64_t position, size_t count, struct hvd_reader *reader);
void hvd_replay_order_finish(struct hvd_replay_order *order); /* zeroed is fine */

/* Its tensors have no next batch any more. */
void hvd_replay_order_unlink(const struct hvd_replay_order *order);

/* This rank has submitted cached->mine, differently from before if is_anew; returns the lane that may
 * be able to go on. */
int hvd_replay_order_submit(const struct hvd_cached_tensor *cached, bool is_anew);

/* Whether the tensor's next batch cannot start because this rank has not submitted something. */
bool hvd_replay_order_is_blocked(const struct hvd_replay_order *order,
                                 const struct hvd_cached_tensor *cached);

/* Starts the next batch of a lane, of this rank's tensors, if it has them all and the one before is
 * done; else *out is NULL. Returns 0 or HVD_ERR_NOMEM. */
int hvd_replay_order_start(struct hvd_replay_order *order, int set, int lane,
                           struct hvd_batch **out);

/* The same of stand-ins, in any case. */
int hvd_replay_order_start_void(struct hvd_replay_order *order, int set, int lane,
                                struct hvd_batch **out);

/* A batch of the order, or of an earlier one, has run. Returns whether its lane is free now. */
bool hvd_replay_order_end(struct hvd_replay_order *order, const struct hvd_batch *batch);

#endif
