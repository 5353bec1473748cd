/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that one could write, drawn at random: what every rank submits, and how each
 * request must end.
 *
 * A job is a row of windows. In each, all ranks of a process set submit the same tensors,
 * in orders of their own; most come back in each window, so that replays are made. One
 * rank may wait in the middle. Then something happens that is not foreseen: a tensor is
 * described anew by all, or by one rank, groups are cut differently, a set is added or
 * removed, ranks join after different numbers of windows, a rank leaves.
 *
 * Sets are added by all ranks, or created by their members, who are alone to remove them,
 * too.
 *
 * In some jobs most of what further process sets do can be replayed. Then they go on
 * while ranks join, and come and go more often. */
#ifndef HVD_AGREEMENT_JOBS_H
#define HVD_AGREEMENT_JOBS_H

#include "tests/collectives/agreement/agreement_program.h"

enum {
    JOB_MOST_RANKS = 64,
    JOB_MOST_SETS = 4, /* the global one among them */
    JOB_MOST_TENSORS = 12 /* of one set */
};

struct job_tensor {
    char name[32];
    struct hvd_descriptor descriptor;
    int with_next; /* the next so many tensors are of the same request */
};

struct job_set {
    bool is_live;
    bool is_created; /* by its members alone */
    int id;
    int ranks[JOB_MOST_RANKS]; /* [count] ascending */
    int count;
    struct job_tensor tensors[JOB_MOST_TENSORS];
    int tensor_count;
};

struct job {
    uint64_t random;
    int nodes[JOB_MOST_RANKS + 1];
    int size;
    struct hvd_agreement_settings settings;
    int slow_rank;
    struct job_set sets[JOB_MOST_SETS];
    struct program programs[JOB_MOST_RANKS];
    int number; /* of what has a number in its name */
    int windows; /* so far */
    bool has_joins;
    bool has_steady_sets;
    bool in_epoch; /* some ranks may have joined already */
    bool must_wait; /* for the removal of a set, before the next one is added */
};

/* What happened in jobs, to see that they try it. */
struct job_counts {
    int64_t replayed_in_sets; /* replayed batches of further sets, on all ranks */
    int64_t void_in_sets;
};

/* Draws and runs a job, and counts. Returns whether all went well; fault says what did
 * not. */
bool job_try(unsigned seed, struct job_counts *counts, char *fault, size_t bytes);

/* --- agreement_windows.c --- */
unsigned job_draw(struct job *job, unsigned below);
/* Adds a tensor of a new name and some kind to the set. */
void job_add_tensor(struct job *job, struct job_set *set);
/* Whether ranks that have joined can take part in it. */
bool job_is_sum(const struct job_tensor *tensor);
void job_reshape(struct job *job, struct job_tensor *tensor);
/* A window in which the ranks with in[rank] take part. */
void job_write_window(struct job *job, const bool *in);

#endif
