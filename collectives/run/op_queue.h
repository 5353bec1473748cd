/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of one schedule that are under way, in the order in which they were posted. */
#ifndef HVD_OP_QUEUE_H
#define HVD_OP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/net/net.h"

struct hvd_run;

/* What a receive adds up (run_steps.c). */
struct hvd_op_sum {
    struct hvd_run *run;
    const char *own;
    char *to; /* NULL: the output, from byte `output` on */
    int64_t output;
    bool is_partial; /* what comes, and own */
};

/* A message under way, and what goes with it for whoever posts it. */
struct hvd_op_item {
    struct hvd_net_op op; /* first: the item is found by it */
    struct hvd_op_sum sum;
    struct hvd_op_item *next;
};

/* Zeroed is an empty queue. */
struct hvd_op_queue {
    struct hvd_op_item *first; /* oldest one under way */
    struct hvd_op_item *last;
    struct hvd_op_item *spare;
    uint64_t posted;
    uint64_t done; /* the first `done` ops have ended well */
};

void hvd_op_queue_finish(struct hvd_op_queue *queue); /* only when no op is under way */

/* The item whose op is posted next, zeroed; it keeps its address while the op is under
 * way. NULL without memory. */
struct hvd_op_item *hvd_op_queue_next(struct hvd_op_queue *queue);

/* 0 when the first `count` ops have ended well, HVD_INPROGRESS, or a failure. */
int hvd_op_queue_wait(struct hvd_op_queue *queue, uint64_t count);

/* Likewise of all that were posted; after a 0 counting starts anew. */
int hvd_op_queue_drain(struct hvd_op_queue *queue);

#endif
