/* SPDX-License-Identifier: Apache-2.0 */
/* What srun can see of the job and of the options typed, as input for the number of tasks. */
#ifndef HVD_SPANK_JOB_H
#define HVD_SPANK_JOB_H

#include "spank/settings.h"
#include "spank/tasks.h"

/* Reads the environment and what srun was told so far. GPUs that srun itself was asked for
 * count, else those of the job. */
void hvd_job_read(const struct hvd_settings *settings, struct hvd_job *job);

/* True when the user said in any way how many tasks to start. What hvd set is not said. */
bool hvd_job_has_tasks(const struct hvd_settings *settings);

/* The nodes that srun is to use; 0 when that is a range, or unknown. One is Slurm's default
 * outside of a job. */
int hvd_job_step_nodes(const struct hvd_settings *settings);

/* Slurm's cpus per task of the job, as text for an option; NULL when the job has none. */
const char *hvd_job_cpus_per_task(void);

#endif
