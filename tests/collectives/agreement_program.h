/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a simulated job do: each its list of calls, in random interleaving. */
#ifndef HVD_AGREEMENT_PROGRAM_H
#define HVD_AGREEMENT_PROGRAM_H

#include "tests/collectives/agreement_sim.h"

enum call_kind {
    CALL_SUBMIT, /* an allreduce of `elements` float32 */
    CALL_PROPOSE, /* what `proposal` says */
    CALL_WAIT, /* for everything submitted so far */
    CALL_JOIN, /* and wait for it */
};

struct call {
    enum call_kind kind;
    char name[48];
    int64_t elements;
    struct hvd_proposal proposal;
};

struct program {
    struct call *calls;
    int count;
    int at;
    struct hvd_request **pending;
    int pending_count;
    int failures; /* requests that failed */
    char failure[256]; /* the text of the last one */
    int64_t value; /* of the last join or process set */
};

void program_add(struct program *program, struct call call);
void program_submit(struct program *program, int64_t elements, const char *format, ...);
void program_wait(struct program *program);
void program_join(struct program *program);

/* Runs the programs, one per rank, to their ends. Returns false, with sim->fault set, when they
 * do not get there. */
bool programs_run(struct sim *sim, struct program *programs);
void programs_finish(struct program *programs, int count);

#endif
