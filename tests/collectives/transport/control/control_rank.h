/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of the control tests do in common. */
#ifndef HVD_TEST_CONTROL_RANK_H
#define HVD_TEST_CONTROL_RANK_H

#include "collectives/transport/control/control.h"
#include "tests/collectives/job.h"

/* The events that a rank has seen. */
struct seen {
    struct hvd_control *control;
    struct hvd_error err;
    int from_children; /* messages */
    long sum; /* of the numbers in them */
    bool is_answered; /* from the parent */
    long answer;
    char *payload; /* the last message from the parent */
    size_t bytes;
    int aborts;
    int abort_rank;
    char text[600];
};

/* Creates, exchanges cards, connects without descriptors to share. Returns connect's
 * status. */
int rank_connect(struct job_rank *self, struct seen *seen, int timeout_ms);

/* Its two halves: the addresses are exchanged; the ranks connect. */
int rank_meet(struct job_rank *self, struct seen *seen);
int rank_join(struct job_rank *self, struct seen *seen, int timeout_ms);

/* After a failure of connect: says status and text to the test, destroys, returns 1. */
int rank_give_up(struct job_rank *self, struct seen *seen, int status);

/* Progresses, sleeping in between, until the time is over or a condition holds. */
typedef bool (*rank_condition)(const struct seen *seen);
bool rank_run(struct seen *seen, rank_condition condition, int timeout_ms);

bool rank_has_abort(const struct seen *seen);
bool rank_has_answer(const struct seen *seen);

/* Adds a number up the tree; returns what the root got, sent down again; -1 on
 * failure. */
long rank_sum(struct seen *seen, struct job_rank *self, long number);

/* Ends in order. */
void rank_leave(struct seen *seen);

/* Open descriptors of this process. */
int rank_descriptors(void);

#endif
