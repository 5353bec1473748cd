/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the job of this process, for the files of the public interface. */
#ifndef HVD_API_H
#define HVD_API_H

#include "collectives/core/job.h"
#include "collectives/hvd.h"

/* Returns the number of the current job among those of this process, from 1. Call it
 * between enter and exit. */
uint64_t hvd_job_number(void);

/* Returns the job, which stays until hvd_job_exit. Returns NULL with the reason in err if
 * this process is not a rank; then do not call hvd_job_exit. */
struct hvd_job *hvd_job_enter(struct hvd_error *err);

/* Does the same without waiting: returns NULL while a job begins or ends. */
struct hvd_job *hvd_job_try_enter(void);
void hvd_job_exit(void);

#endif
