/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of one schedule that are in flight, in the order in which they were
 * posted. */
#ifndef HVD_OP_QUEUE_H
#define HVD_OP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/net/net.h"

struct hvd_run;

/* The operands of a receive (RECV_REDUCE) that adds its message to elements of this
 * rank. */
struct hvd_op_sum {
    struct hvd_run *run;
    const char *own;
    char *to; /* NULL: to byte `output` of the output */
    int64_t output;
    bool is_partial; /* the message and `own` are partials */
};

/* A message in flight, with data for the code that posted it. */
struct hvd_op_item {
    struct hvd_net_op op; /* first, so that the op's address is the item's */
    struct hvd_op_sum sum;
    struct hvd_op_item *next;
};

/* A zeroed queue is empty. */
struct hvd_op_queue {
    struct hvd_op_item *first; /* the oldest in flight */
    struct hvd_op_item *last;
    struct hvd_op_item *spare;
    uint64_t posted;
    uint64_t done; /* the first `done` ops have succeeded */
};

void hvd_op_queue_finish(struct hvd_op_queue *queue); /* no op may be in flight */

/* Adds a zeroed item, for the op that the caller posts next. It keeps its address while
 * the op is in flight. Returns NULL if memory is out. */
struct hvd_op_item *hvd_op_queue_next(struct hvd_op_queue *queue);

/* Returns 0 when the first `count` ops have succeeded, HVD_INPROGRESS, or a failure. */
int hvd_op_queue_wait(struct hvd_op_queue *queue, uint64_t count);

/* Does the same for all ops that were posted. When it returns 0, the queue starts to
 * count ops from 0 again. */
int hvd_op_queue_drain(struct hvd_op_queue *queue);

#endif
