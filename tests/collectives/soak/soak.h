/* SPDX-License-Identifier: Apache-2.0 */
/* A long, random life of a job: what the files of the soak share.
 *   soak.c         the cycles of init and shutdown, and what they leave behind
 *   soak_call.c    a collective that all ranks draw alike
 *   soak_flight.c  one rank's part in it, and what must come out
 *   soak_steps.c   rows of calls: random ones, and steps that repeat
 *   soak_uneven.c  ranks that run out of work, and join
 *   soak_sets.c    process sets that come and go
 *
 * All ranks draw what happens from the same numbers, so that each knows what the others
 * do; in which order and when a rank does its part it draws from numbers of its own. What
 * is wrong is printed and ends the process with 1. */
#ifndef HVD_TEST_SOAK_H
#define HVD_TEST_SOAK_H

#include "tests/collectives/soak/soak_call.h"

enum {
    SOAK_SETS = 5, /* at a time, the global one included */
    SOAK_MOST_CALLS = 48, /* in a row */
};

/* A process set as all ranks know it; [0] is the global one. */
struct soak_set {
    int id;
    int count;
    int ranks[SOAK_RANKS];
    int index; /* of this rank, or -1 */
    bool is_created; /* by its members alone: others do not know its id */
};

struct soak {
    int rank;
    int size;
    struct soak_random shared; /* the same on all ranks */
    struct soak_random own;
    /* of names; a thread that makes calls of its own has another one */
    const char *prefix;
    struct soak_set sets[SOAK_SETS];
    int set_count;
    int sets_created; /* so far */
    long calls; /* that this rank has made */
    long faults; /* of them on purpose wrong on some rank */
};

/* One rank's part in a call. */
struct soak_flight {
    const struct soak_call *call;
    struct soak_set set;
    struct hvd_request *request; /* NULL: not a member */
    void *inputs[SOAK_TENSORS];
    void *outputs[SOAK_TENSORS];
};

/* Prints what is wrong and ends the process. */
void soak_fail(const struct soak *soak, const char *format, ...) HVD_PRINTF(2, 3);

/* Says what comes, for the case that it never ends. */
void soak_note(const struct soak *soak, const char *what);

/* All ranks have the same number. */
void soak_agree(struct soak *soak, int number);

/* --- soak_flight.c --- */
/* Starts this rank's part; the call and its set must stay until the end. */
void soak_start(struct soak *soak, const struct soak_call *call,
                struct soak_flight *flight);
/* Waits for it and checks the outcome. */
void soak_finish(struct soak *soak, struct soak_flight *flight);
/* Waits in one of the ways that there are. */
int soak_end(struct soak *soak, struct hvd_request *request, struct hvd_error *err);
/* Looks at a call without waiting for its end. */
void soak_glance(struct soak *soak, struct soak_flight *flight);

/* --- soak_steps.c --- */
void soak_round(struct soak *soak); /* calls of all kinds, each rank in its order */
void soak_steady(
    struct soak *soak); /* steps that repeat, and perhaps something between them */
/* A row of random calls, started in a random order; returns their number. */
int soak_start_some(struct soak *soak, int most, struct soak_call *calls,
                    struct soak_flight *flights);
/* As a program does that has other things to do in between. */
void soak_start_next(struct soak *soak, const struct soak_call *call,
                     struct soak_flight *flight);
void soak_finish_all(struct soak *soak, struct soak_flight *flights, int count);

/* --- soak_uneven.c --- */
void soak_uneven(struct soak *soak); /* ranks with different numbers of steps; all join */

/* --- soak_sets.c --- */
void soak_sets_begin(struct soak *soak); /* after init */
void soak_add_set(struct soak *soak);
void soak_remove_set(struct soak *soak);
/* Tensors that some ranks do not have, to be ended by shutdown. */
void soak_leave(struct soak *soak);

#endif
