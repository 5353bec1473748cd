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

/* Zeroed when idle. */
struct hvd_gpu_host_gather {
    struct hvd_run *run; /* NULL when idle */
    struct hvd_entry entry;
    int64_t *rows; /* [size] */
};

/* Starts the allgather. All ranks of the team pass the same number of bytes. data is
 * borrowed until hvd_gpu_host_gather_end. name: the tensor named in errors. */
int hvd_gpu_host_gather_begin(struct hvd_gpu_host_gather *gather, struct hvd_team *team,
                              const char *name, const void *data, size_t bytes,
                              struct hvd_error *err);

/* Returns 0 when done, HVD_INPROGRESS or a failure; work and moved are as in
 * hvd_run_progress. */
int hvd_gpu_host_gather_progress(struct hvd_gpu_host_gather *gather, int64_t *work,
                                 bool *moved, struct hvd_error *err);

/* Returns the data of all ranks, in order of rank; valid from completion until
 * hvd_gpu_host_gather_end. */
const void *hvd_gpu_host_gather_result(const struct hvd_gpu_host_gather *gather);

/* Makes the host stop accessing the data. leaks: the result is never freed, because
 * another rank may still write to it. */
void hvd_gpu_host_gather_forget(struct hvd_gpu_host_gather *gather, bool leaks);

/* Ends and resets the allgather, even while it is in progress. */
void hvd_gpu_host_gather_end(struct hvd_gpu_host_gather *gather);

#endif
