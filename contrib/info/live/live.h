/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ranks on this node, and reads what they are doing from the pages that libhvd
 * keeps (collectives/trace/live_page.h). The ranks need not answer. */
#ifndef HVD_INFO_LIVE_H
#define HVD_INFO_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "collectives/trace/live_page.h"
#include "gpu_binding/base/error.h"

enum {
    HVD_INFO_STACK_BYTES = 3072,
};

struct hvd_info_tensor {
    double age_s; /* since the rank submitted it */
    int set;
    char operation[HVD_LIVE_TEXT];
};

struct hvd_info_rank {
    uint32_t job, step; /* of Slurm; 0 outside a job */
    uint64_t number; /* tells apart the jobs of one step (live_page.h) */
    int rank, size;
    char host[64];
    pid_t pid;
    char process; /* the letter of ps: R, S, D, T, ... */
    enum hvd_live_phase phase;
    uint64_t steps; /* of the optimizer; 0: not counted */
    uint64_t ended; /* collectives */
    int in_flight; /* collectives */
    /* Whether the members below still hold; if not, the rank has done something since it
     * wrote them. */
    bool is_current;
    double age_s; /* since they were written */
    bool is_waiting; /* threads of the program wait */
    bool has_messages; /* sends or receives are in flight */
    int count;
    struct hvd_info_tensor tensors[HVD_LIVE_TENSORS]; /* [count] the oldest ones */
    char stack[HVD_INFO_STACK_BYTES]; /* of the main thread, if asked for */
};

struct hvd_info_ranks {
    struct hvd_info_rank *all; /* [count], owned */
    int count;
};

/* Which ranks to find. */
struct hvd_info_selection {
    uint32_t job; /* of Slurm; 0: any */
    int64_t array; /* index in a job array; -1: none */
    int64_t step; /* -1: any */
    pid_t pid; /* this process and its descendants; 0: any */
    bool has_stacks; /* read their stacks, too */
};

/* Adds the ranks of this node. Skips processes that this user may not inspect. */
int hvd_info_live_find(const struct hvd_info_selection *which,
                       struct hvd_info_ranks *ranks, struct hvd_error *err);

/* Adds a copy of a rank. Do not trust the data, which any user can forge and root may
 * read: skips a rank with impossible numbers, and replaces control characters by '?'. */
int hvd_info_live_add(struct hvd_info_ranks *ranks, const struct hvd_info_rank *rank,
                      struct hvd_error *err);

/* Write a rank as one line, and read it back. Only for ranks that were added. Parsing
 * returns false for any other line. */
void hvd_info_live_write(const struct hvd_info_rank *rank, FILE *out);
bool hvd_info_live_parse(const char *line, struct hvd_info_rank *rank);

#endif
