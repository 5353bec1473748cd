/* SPDX-License-Identifier: Apache-2.0 */
/* What srun can see of the job and of the options typed. */
#include "spank/job.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/env.h"
#include "spank/counts.h"

/* More than any cluster; keeps later products far from overflow. */
enum {
    NUMBER_MAX = 100000
};

/* Any of these says how many tasks to start; then hvd has no say. */
static const char *const task_options[] = {
    "ntasks",         "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "ntasks-per-tres",
};

static int number_of(const char *text)
{
    char *end = NULL;
    long value = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : 0;

    return value > 0 && value <= NUMBER_MAX && *end == '\0' ? (int)value : 0;
}

static const char *env_text(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? text : "";
}

/* The GPUs per node that srun itself was asked for: 0 unknown or not asked. */
static int typed_gpus(const struct hvd_settings *settings)
{
    static const char *const names[] = {"gres", "gpus-per-node"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[128];

        hvd_settings_get(settings, names[i], text, sizeof(text));
        if (strstr(text, "gpu") != NULL || isdigit((unsigned char)text[0])) {
            return hvd_gpu_count(text);
        }
    }
    return 0;
}

void hvd_job_read(const struct hvd_settings *settings, struct hvd_job *job)
{
    memset(job, 0, sizeof(*job));
    job->nodes = number_of(env_text(HVD_ENV_SLURM_JOB_NODES));
    job->cpus_per_node = hvd_count_least(getenv(HVD_ENV_SLURM_JOB_CPUS_PER_NODE));
    job->cpus_per_task = number_of(env_text(HVD_ENV_SLURM_CPUS_PER_TASK));
    if (hvd_settings_has(settings, "gres") ||
        hvd_settings_has(settings, "gpus-per-node")) {
        job->gpus_per_node = typed_gpus(settings);
        return;
    }
    job->gpus_per_node = number_of(env_text(HVD_ENV_SLURM_GPUS_ON_NODE));
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
    char text[32];

    hvd_settings_get(settings, "nodes", text, sizeof(text));
    return number_of(text);
}

const char *hvd_job_cpus_per_task(void)
{
    const char *text = getenv(HVD_ENV_SLURM_CPUS_PER_TASK);

    return text != NULL && number_of(text) > 0 ? text : NULL;
}
