/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that measure together, and their communication outside of timed parts. They
 * communicate by hvd itself, so no other library is needed. All functions except finish
 * are collective. */
#ifndef HVD_BENCH_JOB_H
#define HVD_BENCH_JOB_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/layout.h"

struct bench_mpi;

struct bench_job {
    /* the result of bench_mpi_start, borrowed; NULL: MPI is not used */
    struct bench_mpi *mpi;
    int rank;
    int size;
    int local_rank;
    int local_size;
    struct hvd_layout layout;
};

/* Joins the job. The caller has set mpi; init fills in the other members. */
int bench_job_init(struct bench_job *job, struct hvd_error *err);
void bench_job_finish(struct bench_job *job); /* also leaves the job */

int bench_job_barrier(struct hvd_error *err);

/* Replaces each value by the largest value of all ranks. */
int bench_job_most(double *values, int count, struct hvd_error *err);

/* Gathers `bytes` of each rank into all[size * bytes], in the order of the ranks. */
int bench_job_gather(const void *mine, size_t bytes, void *all, struct hvd_error *err);

/* Returns 0 on all ranks, or on all ranks the status of the lowest rank that failed. A
 * rank with HVD_ERR_PEER counts only if no rank gives another status: the rank that it
 * has lost knows the cause. mine: this rank's status, with its reason in *err. After a
 * failure *err has the reason of that lowest rank, and its number unless all ranks gave
 * the same reason. */
int bench_job_agree(int mine, struct hvd_error *err);

double bench_now(void); /* seconds, monotonic */

#endif
