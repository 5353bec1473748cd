/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that measure together, and what they tell each other outside of timed parts:
 * through hvd itself, so that nothing else has to be there. All functions but finish are
 * collective. */
#ifndef HVD_BENCH_JOB_H
#define HVD_BENCH_JOB_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/layout.h"

struct bench_mpi;

struct bench_job {
    struct bench_mpi *mpi; /* as bench_mpi_start left it, borrowed; NULL: not asked for */
    int rank;
    int size;
    int local_rank;
    int local_size;
    struct hvd_layout layout;
};

/* Joins the job. mpi is set already, the rest is filled. */
int bench_job_init(struct bench_job *job, struct hvd_error *err);
void bench_job_finish(struct bench_job *job); /* leaves the job, too */

int bench_job_barrier(struct hvd_error *err);

/* The largest over all ranks, for each of the values, in place. */
int bench_job_most(double *values, int count, struct hvd_error *err);

/* all, [size * bytes], gets what each rank brings, in the order of the ranks. */
int bench_job_gather(const void *mine, size_t bytes, void *all, struct hvd_error *err);

/* Makes of the ranks' statuses one, that of the lowest rank that failed; err then says
 * whose it is, unless all say the same. mine: this rank's status, *err its reason. */
int bench_job_agree(int mine, struct hvd_error *err);

double bench_now(void); /* seconds, monotonic */

#endif
