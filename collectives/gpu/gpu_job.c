/* SPDX-License-Identifier: Apache-2.0 */
/* A job: work for the module, from its steps until the device has done it. */
#include "collectives/gpu/gpu_job.h"

#include "gpu_binding/base/error.h"

int hvd_gpu_job_submit(struct hvd_gpu_runtime *gpu, struct hvd_gpu_job *job,
                       enum hvd_gpu_queue queue, struct hvd_gpu_comm *comm,
                       struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = gpu->pool;
    int status = 0;

    if (job->steps.failed) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the steps of a batch");
    }
    if (job->mark == NULL) {
        status = hvd_gpu_mark_create(pool, &job->mark, err);
    }
    if (status != 0) {
        return status;
    }
    job->work.queue = queue;
    job->work.comm = comm;
    job->work.steps = job->steps.steps;
    job->work.count = job->steps.count;
    job->work.done = job->mark->event;
    job->is_submitted = true;
    job->next = gpu->jobs;
    gpu->jobs = job;
    pool->module->submit(pool->device, &job->work);
    return 0;
}

static int work_status(const struct hvd_gpu_job *job)
{
    return job->is_submitted
               ? atomic_load_explicit(&job->work.status, memory_order_acquire)
               : 0;
}

int hvd_gpu_job_launched(const struct hvd_gpu_job *job, struct hvd_error *err)
{
    int status = work_status(job);

    return status >= 0 ? status : hvd_fail(err, status, "%s", job->work.error.text);
}

int hvd_gpu_job_reached(const struct hvd_gpu_job *job, struct hvd_error *err)
{
    int status = hvd_gpu_job_launched(job, err);

    return status != 0 || !job->is_submitted
               ? status
               : job->mark->pool->module->event_test(job->mark->event, err);
}

bool hvd_gpu_job_is_held(const struct hvd_gpu_job *job)
{
    return work_status(job) == HVD_INPROGRESS;
}

void hvd_gpu_job_end(struct hvd_gpu_runtime *gpu, struct hvd_gpu_job *job)
{
    struct hvd_gpu_job **at = &gpu->jobs;

    while (job->is_submitted && *at != job) {
        at = &(*at)->next;
    }
    if (job->is_submitted) {
        *at = job->next;
    }
    hvd_gpu_steps_finish(&job->steps);
    hvd_refcount_drop(job->mark != NULL ? &job->mark->refcount : NULL);
    *job = (struct hvd_gpu_job){0};
}
