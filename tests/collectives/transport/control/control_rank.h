/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that ranks in the control tests share. */
#ifndef HVD_TEST_CONTROL_RANK_H
#define HVD_TEST_CONTROL_RANK_H

#include "collectives/transport/control/control.h"
#include "tests/collectives/job.h"

/* The events that a rank has received. */
struct seen {
    struct hvd_control *control;
    struct hvd_error err;
    int from_children; /* number of messages from children */
    long sum; /* sum of the numbers in these messages */
    bool is_answered; /* a message has come from the parent */
    long answer;
    char *payload; /* the last message from the parent */
    size_t bytes;
    int aborts;
    int abort_rank;
    char text[600];
};

/* Creates the control network, exchanges addresses and connects, without descriptors to
 * share. Returns the status of hvd_control_connect. */
int rank_connect(struct job_rank *self, struct seen *seen, int timeout_ms);

/* The two halves of rank_connect: rank_meet creates the network and exchanges addresses,
 * rank_join connects. */
int rank_meet(struct job_rank *self, struct seen *seen);
int rank_join(struct job_rank *self, struct seen *seen, int timeout_ms);

/* Ends a rank that could not connect: reports status and text to the test, destroys the
 * control network and returns 1. */
int rank_give_up(struct job_rank *self, struct seen *seen, int status);

/* Makes progress until a condition holds or the time is over; sleeps in between. Returns
 * whether the condition holds. */
typedef bool (*rank_condition)(const struct seen *seen);
bool rank_run(struct seen *seen, rank_condition condition, int timeout_ms);

bool rank_has_abort(const struct seen *seen);
bool rank_has_answer(const struct seen *seen);

/* Adds up the numbers of all ranks at the root of the tree and sends the sum down.
 * Returns the sum, or -1 on failure. */
long rank_sum(struct seen *seen, struct job_rank *self, long number);

/* Leaves the network without an abort. */
void rank_leave(struct seen *seen);

/* Returns the number of open descriptors of this process. */
int rank_descriptors(void);

#endif
