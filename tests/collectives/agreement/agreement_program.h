/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a simulated job do: each its list of calls, in random
 * interleaving. */
#ifndef HVD_AGREEMENT_PROGRAM_H
#define HVD_AGREEMENT_PROGRAM_H

#include "tests/collectives/agreement_sim/agreement_sim.h"

enum call_kind {
    CALL_SUBMIT, /* tensors, as one request */
    CALL_SUBMIT_JOINED, /* the same, unless the rank's join has ended by then */
    CALL_WAIT, /* for everything submitted so far */
    CALL_WAIT_FOR, /* for the request of one name */
    CALL_TUNE, /* rank 0: another fusion threshold */
    CALL_LEAVE, /* hvd_shutdown, without waiting for its end */
};

/* How a request must end; zeroed: in any way. */
struct ending {
    const char *text; /* "": well; else it fails, with this in its message. Borrowed */
    bool may_be_aborted; /* well, or since a member has given up the set */
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
    PROGRAM_LAST_SET = -1 /* of a descriptor: the set that the program has made last */
};

/* Zeroed: does nothing. */
struct program {
    struct call *calls; /* [count] */
    int count;
    int at;
    struct pending *pending;
    int pending_count;
    int failures; /* requests that failed */
    int surprises; /* of them those that no ending was given for */
    char failure[256]; /* the text of the last one */
    int64_t value; /* of the last join or process set */
};

/* Adds calls. Descriptors are copied. */
void program_submit(struct program *program, int64_t elements, const char *format, ...)
    HVD_PRINTF(3, 4);
void program_propose(struct program *program, const struct hvd_descriptor *tensor,
                     const struct ending *ending);
void program_propose_group(struct program *program,
                           const struct hvd_descriptor *const *tensors, int count,
                           const struct ending *ending);
void program_wait(struct program *program);
void program_wait_for(struct program *program, const char *name);
void program_join(struct program *program); /* and wait for it */
void program_start_join(struct program *program);
/* A tensor that is refused because this rank's join is under way, if it still is. */
void program_submit_joined(struct program *program, const struct hvd_descriptor *tensor);
void program_tune(struct program *program, int64_t threshold);
void program_leave(struct program *program);

/* Runs the programs, one per rank, to their ends, and checks that nothing is left.
 * Returns false, with sim->fault set, when that fails. */
bool programs_run(struct sim *sim, struct program *programs);
void programs_finish(struct program *programs, int count);

#endif
