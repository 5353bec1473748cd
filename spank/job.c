/* SPDX-License-Identifier: Apache-2.0 */
/* What srun can see of the job and of the options typed. */
#include "spank/job.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "spank/counts.h"

/* Any of these says how many tasks to start; then hvd has no say. */
static const char *const task_options[] = {
    "ntasks",         "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "ntasks-per-tres",
};

static const char *env_text(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? text : "";
}

/* The GPUs per node that srun itself was asked for: 0 unknown or none. */
static int typed_gpus(const struct hvd_settings *settings)
{
    char text[128];

    hvd_settings_get(settings, "gpus-per-node", text, sizeof(text));
    if (text[0] == '\0') {
        hvd_settings_get(settings, "gres", text, sizeof(text));
    }
    return hvd_gpu_count(text);
}

void hvd_job_read(const struct hvd_settings *settings, struct hvd_job *job)
{
    memset(job, 0, sizeof(*job));
    job->nodes = hvd_number_of(env_text(HVD_ENV_SLURM_JOB_NODES));
    if (!hvd_settings_has(settings, "overcommit")) {
        job->cpus_per_node = hvd_count_least(getenv(HVD_ENV_SLURM_JOB_CPUS_PER_NODE));
    }
    job->cpus_per_task = hvd_settings_has(settings, "cpus-per-task")
                             ? hvd_settings_number(settings, "cpus-per-task")
                             : hvd_number_of(env_text(HVD_ENV_SLURM_CPUS_PER_TASK));
    if (hvd_settings_has(settings, "gres") ||
        hvd_settings_has(settings, "gpus-per-node")) {
        job->gpus_per_node = typed_gpus(settings);
        return;
    }
    job->gpus_per_node = hvd_number_of(env_text(HVD_ENV_SLURM_GPUS_ON_NODE));
    if (job->gpus_per_node == 0) {
        job->gpus_per_node = hvd_gpu_count(env_text(HVD_ENV_SLURM_GPUS_PER_NODE));
    }
    job->gpus = hvd_gpu_count(env_text(HVD_ENV_SLURM_GPUS));
}

bool hvd_job_has_tasks(const struct hvd_settings *settings)
{
    for (size_t i = 0; i < sizeof(task_options) / sizeof(task_options[0]); i++) {
        if (hvd_settings_has(settings, task_options[i]) &&
            !hvd_settings_made(settings, task_options[i])) {
            return true;
        }
    }
    return false;
}

int hvd_job_step_nodes(const struct hvd_settings *settings)
{
    if (hvd_settings_has(settings, "nodes")) {
        return hvd_settings_number(settings, "nodes");
    }
    return getenv(HVD_ENV_SLURM_JOB) == NULL ? 1 : 0;
}

const char *hvd_job_cpus_per_task(void)
{
    const char *text = getenv(HVD_ENV_SLURM_CPUS_PER_TASK);

    return text != NULL && hvd_number_of(text) > 0 ? text : NULL;
}
