/* SPDX-License-Identifier: Apache-2.0 */
/* A job: work for the module, from its steps until the device has done it.
 *
 *   add steps ---> submit ---> launched: on its stream ---> reached: the device is done
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_JOB_H
#define HVD_GPU_JOB_H

#include "collectives/gpu/gpu_runtime.h"
#include "collectives/gpu/gpu_steps.h"

/* Zeroed when idle. */
struct hvd_gpu_job {
    struct hvd_gpu_job *next; /* linked from gpu->jobs */
    struct hvd_gpu_work work;
    struct hvd_gpu_steps steps;
    struct hvd_gpu_mark *mark; /* marks the end of the work; created by submit if NULL */
    bool is_submitted; /* true until end */
};

/* Passes the steps to the launcher. comm: NULL for work without collectives. */
int hvd_gpu_job_submit(struct hvd_gpu_runtime *gpu, struct hvd_gpu_job *job,
                       enum hvd_gpu_queue queue, struct hvd_gpu_comm *comm,
                       struct hvd_error *err);

/* Both return 0, HVD_INPROGRESS or a failure; 0 also if nothing was submitted. */
int hvd_gpu_job_launched(const struct hvd_gpu_job *job, struct hvd_error *err);
int hvd_gpu_job_reached(const struct hvd_gpu_job *job, struct hvd_error *err);

/* Whether the launcher is still using the job. */
bool hvd_gpu_job_is_held(const struct hvd_gpu_job *job);

/* Frees the job's contents and resets the job. Do not call this while the launcher is
 * using it. */
void hvd_gpu_job_end(struct hvd_gpu_runtime *gpu, struct hvd_gpu_job *job);

#endif
