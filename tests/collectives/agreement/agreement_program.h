/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of the ranks of a simulated job: a list of calls for each rank. The calls
 * of different ranks are interleaved at random. */
#ifndef HVD_AGREEMENT_PROGRAM_H
#define HVD_AGREEMENT_PROGRAM_H

#include "tests/collectives/agreement_sim/agreement_sim.h"

enum call_kind {
    CALL_SUBMIT, /* submits tensors as one request */
    CALL_SUBMIT_JOINED, /* the same, unless the rank's join has ended by then */
    CALL_WAIT, /* waits for all requests so far */
    CALL_WAIT_FOR, /* waits for the request with this name */
    CALL_TUNE, /* rank 0 changes the fusion threshold */
    CALL_LEAVE, /* calls hvd_shutdown, without waiting for its end */
};

/* The way in which a request must end. All zeros: any way. */
struct ending {
    /* "": it must succeed; otherwise it must fail with this in its message. Borrowed */
    const char *text;
    bool may_be_aborted; /* it may also fail because a member has aborted the set */
    bool has_value;
    int64_t value;
};

struct call {
    enum call_kind kind;
    struct hvd_descriptor **tensors; /* [count] */
    int count;
    struct ending ending;
    char *name; /* CALL_WAIT_FOR */
    int64_t threshold; /* CALL_TUNE */
};

struct pending {
    struct hvd_request *request;
    struct ending ending;
};

enum {
    PROGRAM_LAST_SET = -1 /* in a descriptor: the set that the program has made last */
};

/* All zeros: an empty program. */
struct program {
    struct call *calls; /* [count] */
    int count;
    int at;
    struct pending *pending;
    int pending_count;
    int failures; /* number of requests that failed */
    int surprises; /* number of failed requests for which no ending was given */
    char failure[256]; /* error text of the last of these */
    int64_t value; /* result of the last join or process set */
};

/* Add calls. Descriptors are copied. */
void program_submit(struct program *program, int64_t elements, const char *format, ...)
    HVD_PRINTF(3, 4);
void program_propose(struct program *program, const struct hvd_descriptor *tensor,
                     const struct ending *ending);
void program_propose_group(struct program *program,
                           const struct hvd_descriptor *const *tensors, int count,
                           const struct ending *ending);
void program_wait(struct program *program);
void program_wait_for(struct program *program, const char *name);
void program_join(struct program *program); /* also waits for the join */
void program_start_join(struct program *program);
/* Adds a tensor that must be refused if this rank's join is still in flight. */
void program_submit_joined(struct program *program, const struct hvd_descriptor *tensor);
void program_tune(struct program *program, int64_t threshold);
void program_leave(struct program *program);

/* Runs the programs, one for each rank, until all have ended, and checks that nothing is
 * left. If that fails, returns false and sets sim->fault. */
bool programs_run(struct sim *sim, struct program *programs);
void programs_finish(struct program *programs, int count);

#endif
