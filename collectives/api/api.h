/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the public interface share: access to the job of this process. */
#ifndef HVD_API_H
#define HVD_API_H

#include "collectives/core/job.h"
#include "collectives/hvd.h"

/* Counts the jobs of this process, from 1; between enter and exit. */
uint64_t hvd_job_number(void);

/* The job, which stays until hvd_job_exit; NULL and the reason in err when this process
 * is not a rank (then no exit). */
struct hvd_job *hvd_job_enter(struct hvd_error *err);

/* The same, or NULL at once while a job begins or ends. */
struct hvd_job *hvd_job_try_enter(void);
void hvd_job_exit(void);

#endif
