/* SPDX-License-Identifier: Apache-2.0 */
/* A small allgather among the hosts of a team, by which ranks exchange facts about a
 * batch before it is launched.
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_HOST_GATHER_H
#define HVD_GPU_HOST_GATHER_H

#include <stdbool.h>

#include "collectives/request/request.h"

struct hvd_run;
struct hvd_team;

/* Zero-initialised when idle. */
struct hvd_gpu_host_gather {
    struct hvd_run *run; /* NULL when idle */
    struct hvd_entry entry;
    int64_t *rows; /* [size] */
};

/* Starts. All ranks of the team send the same number of bytes; data is borrowed until the
 * end. name: of a tensor, for errors. */
int hvd_gpu_host_gather_begin(struct hvd_gpu_host_gather *gather, struct hvd_team *team,
                              const char *name, const void *data, size_t bytes,
                              struct hvd_error *err);

/* Returns 0 when it is done, HVD_INPROGRESS or a failure; work and moved as in
 * hvd_run_progress. */
int hvd_gpu_host_gather_progress(struct hvd_gpu_host_gather *gather, int64_t *work,
                                 bool *moved, struct hvd_error *err);

/* The bytes of all ranks, in order of rank; valid from completion until end. */
const void *hvd_gpu_host_gather_result(const struct hvd_gpu_host_gather *gather);

/* See hvd_gpu_run_forget. */
void hvd_gpu_host_gather_forget(struct hvd_gpu_host_gather *gather, bool leaks);

/* Resets it, even while it is in progress. */
void hvd_gpu_host_gather_end(struct hvd_gpu_host_gather *gather);

#endif
