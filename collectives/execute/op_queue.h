/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of one schedule that are under way, in the order in which they were posted. */
#ifndef HVD_OP_QUEUE_H
#define HVD_OP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/net/net.h"

struct hvd_op_item;
struct hvd_run;

/* What a receive adds up (run_steps.c). */
struct hvd_op_sum {
    struct hvd_run *run;
    const char *own;
    char *to; /* NULL: output bytes from begin on */
    int64_t begin;
    bool is_partial; /* what comes, and own */
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

/* The op to post next, zeroed; it keeps its address while it is under way. NULL without
 * memory. */
struct hvd_net_op *hvd_op_queue_next(struct hvd_op_queue *queue);

/* What goes with an op of a queue, for whoever posts it. */
struct hvd_op_sum *hvd_op_queue_sum(struct hvd_net_op *op);

/* 0 when the first `count` ops have ended well, HVD_INPROGRESS, or a failure. */
int hvd_op_queue_wait(struct hvd_op_queue *queue, uint64_t count);

#endif
