/* SPDX-License-Identifier: Apache-2.0 */
/* The soak test starts and shuts down a job many times; between init and shutdown (a
 * life), it makes random calls. It has these files:
 *   soak.c         the lives, and a check for leaks
 *   soak_call.c    random collectives, the same on all ranks
 *   soak_flight.c  one rank's part in a collective, and a check of its result
 *   soak_steps.c   sequences of calls: random ones, and steps that repeat
 *   soak_uneven.c  ranks that run out of work, and join
 *   soak_sets.c    process sets that are added and removed
 *
 * All ranks use the same random numbers to choose what happens, so each rank knows what
 * the others do. A rank uses random numbers of its own for the order and the time of its
 * calls. An error is printed and ends the process with 1. */
#ifndef HVD_TEST_SOAK_H
#define HVD_TEST_SOAK_H

#include "tests/collectives/soak/soak_call.h"

enum {
    SOAK_SETS = 5, /* process sets at a time, including the global one */
    SOAK_MOST_CALLS = 48, /* most calls in a sequence */
};

/* A process set, as all ranks know it. soak->sets[0] is the global set. */
struct soak_set {
    int id;
    int count;
    int ranks[SOAK_RANKS];
    int index; /* this rank's number in the set, or -1 */
    bool is_created; /* created by its members alone; other ranks do not know its id */
};

struct soak {
    int rank;
    int size;
    struct soak_random shared; /* random numbers that are the same on all ranks */
    struct soak_random own;
    /* first part of tensor names; the second thread has another one */
    const char *prefix;
    struct soak_set sets[SOAK_SETS];
    int set_count;
    int sets_created; /* number of sets created in this life */
    long calls; /* made by this rank */
    long faults; /* calls that were wrong on some rank on purpose */
};

/* A call that this rank has started, with its memory. */
struct soak_flight {
    const struct soak_call *call;
    struct soak_set set;
    struct hvd_request *request; /* NULL if this rank is not a member */
    void *inputs[SOAK_TENSORS];
    void *outputs[SOAK_TENSORS];
};

/* Prints an error and ends the process. */
void soak_fail(const struct soak *soak, const char *format, ...) HVD_PRINTF(2, 3);

/* Notes the phase that begins. The watchdog prints it if the phase does not end in
 * time. */
void soak_note(const struct soak *soak, const char *what);

/* Fails unless all ranks pass the same number. */
void soak_agree(struct soak *soak, int number);

/* --- soak_flight.c --- */
/* Starts this rank's part of a call. The call and its set must stay until the end. */
void soak_start(struct soak *soak, const struct soak_call *call,
                struct soak_flight *flight);
/* Waits for the call and checks its result. */
void soak_finish(struct soak *soak, struct soak_flight *flight);
/* Waits for a request with one of the functions that can wait, at random. */
int soak_end(struct soak *soak, struct hvd_request *request, struct hvd_error *err);
/* Polls a call without waiting for its end. */
void soak_glance(struct soak *soak, struct soak_flight *flight);

/* --- soak_steps.c --- */
/* Makes calls of all kinds, which each rank starts in an order of its own. */
void soak_round(struct soak *soak);
/* repeats the same step, sometimes with a disturbance */
void soak_steady(struct soak *soak);
/* Starts some random calls in a random order; returns their number. */
int soak_start_some(struct soak *soak, int most, struct soak_call *calls,
                    struct soak_flight *flights);
/* Starts a call, like a program that does other work in between: after a short random
 * delay. */
void soak_start_next(struct soak *soak, const struct soak_call *call,
                     struct soak_flight *flight);
void soak_finish_all(struct soak *soak, struct soak_flight *flights, int count);

/* --- soak_uneven.c --- */
/* Gives ranks different numbers of steps; each rank joins after its last step. */
void soak_uneven(struct soak *soak);

/* --- soak_sets.c --- */
void soak_sets_begin(struct soak *soak); /* call it after init */
void soak_add_set(struct soak *soak);
void soak_remove_set(struct soak *soak);
/* Shuts down while some ranks have not submitted some tensors. Shutdown must end
 * these. */
void soak_leave(struct soak *soak);

#endif
