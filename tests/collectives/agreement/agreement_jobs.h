/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs that a user could write: the calls of every rank, and how each request must
 * end.
 *
 * A job is a sequence of windows. In each, all ranks of a process set submit the same
 * tensors, each rank in its own order. Most tensors are submitted again in each window,
 * so that replays begin. One rank may pause in the middle. After some windows, a surprise
 * follows: all ranks or one of them describe a tensor anew, tensors are grouped in
 * another way, a set is added or removed, ranks join after different numbers of windows,
 * or a rank leaves.
 *
 * Sets are added by all ranks, or created by their members, who then also remove them
 * alone.
 *
 * In some jobs (has_steady_sets), nearly all tensors of sets other than the global one
 * are reductions, so that these sets can have replays. These sets continue while ranks
 * join, and are added and removed more often. */
#ifndef HVD_AGREEMENT_JOBS_H
#define HVD_AGREEMENT_JOBS_H

#include "tests/collectives/agreement/agreement_program.h"

enum {
    JOB_MOST_RANKS = 64,
    JOB_MOST_SETS = 4, /* most sets, including the global one */
    JOB_MOST_TENSORS = 12 /* most tensors of a set */
};

struct job_tensor {
    char name[32];
    struct hvd_descriptor descriptor;
    int with_next; /* number of following tensors that are part of the same request */
};

struct job_set {
    bool is_live;
    bool is_created; /* created by its members alone */
    int id;
    int ranks[JOB_MOST_RANKS]; /* [count]: members in ascending order */
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
    int number; /* counter that makes names unique */
    int windows; /* number of windows so far */
    bool has_joins;
    bool has_steady_sets;
    bool in_epoch; /* some ranks may have joined */
    bool must_wait; /* the next set is added only after the removal of another one */
};

/* Counts of events, which prove that random jobs contain them. */
struct job_counts {
    /* replayed batches of sets other than the global one, on all ranks */
    int64_t replayed_in_sets;
    int64_t void_in_sets;
};

/* Draws and runs a job, and adds to the counts. Returns whether it passed; if not, fault
 * says why. */
bool job_try(unsigned seed, struct job_counts *counts, char *fault, size_t bytes);

/* --- agreement_windows.c --- */
unsigned job_draw(struct job *job, unsigned below);
/* Adds a tensor with a new name and a random kind to the set. */
void job_add_tensor(struct job *job, struct job_set *set);
/* Whether ranks that have joined can take part in the tensor. */
bool job_is_sum(const struct job_tensor *tensor);
void job_reshape(struct job *job, struct job_tensor *tensor);
/* Adds a window in which the ranks with in[rank] take part. */
void job_write_window(struct job *job, const bool *in);

#endif
