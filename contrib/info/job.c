/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ranks, cpus and GPUs of the Slurm job around hvd-info. */
#include "contrib/info/job.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"

/* Returns the number if the whole text is a positive number, else 0. */
static int read_count(const char *text)
{
    char *end = NULL;
    long value = text != NULL ? strtol(text, &end, 10) : 0;

    return text != NULL && end != text && *end == '\0' && value > 0 && value < 1000000
               ? (int)value
               : 0;
}

int hvd_info_count_of(const char *counts, int node)
{
    while (counts != NULL && *counts != '\0') {
        char *end = NULL;
        long count = strtol(counts, &end, 10);
        long times = 1;

        if (end == counts || count < 1 || count > HVD_PLAN_RANKS_MAX) {
            return 0;
        }
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            end += *end == ')';
        }
        if (times < 1) {
            return 0;
        }
        if (node < times) {
            return (int)count;
        }
        node -= (int)times;
        counts = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

static bool take_ranks(hvd_info_lookup lookup, const char *name, int node,
                       struct hvd_info_job *job)
{
    int count = hvd_info_count_of(lookup(name), node);

    if (count > 0) {
        job->rank_count = count;
        job->rank_source = name;
    }
    return count > 0;
}

/* Finds the number of ranks. In a job without any option for tasks, --hvd starts one rank
 * per GPU. */
static void read_ranks(hvd_info_lookup lookup, struct hvd_info_job *job)
{
    int node = read_count(lookup(HVD_ENV_SLURM_NODEID));

    if (job->is_step &&
        take_ranks(lookup, HVD_ENV_SLURM_STEP_TASKS_PER_NODE, node, job)) {
        return;
    }
    if (take_ranks(lookup, HVD_ENV_SLURM_NTASKS_PER_NODE, 0, job)) {
        return;
    }
    if (lookup(HVD_ENV_SLURM_TASKS) != NULL &&
        take_ranks(lookup, HVD_ENV_SLURM_TASKS_PER_NODE, node, job)) {
        return;
    }
    take_ranks(lookup, HVD_ENV_SLURM_GPUS_ON_NODE, 0, job);
}

static void read_gpus(hvd_info_lookup lookup, struct hvd_info_job *job)
{
    static const char *const lists[] = {HVD_ENV_SLURM_STEP_GPUS, HVD_ENV_SLURM_JOB_GPUS};

    for (int i = job->is_step ? 0 : 1; i < 2; i++) {
        const char *numbers = lookup(lists[i]);

        if (numbers != NULL && numbers[0] != '\0') {
            job->gpu_numbers = numbers;
            job->gpu_source = lists[i];
            return;
        }
    }
    job->gpu_count = read_count(lookup(HVD_ENV_SLURM_GPUS_ON_NODE));
    if (job->gpu_count > 0) {
        job->gpu_source = HVD_ENV_SLURM_GPUS_ON_NODE;
    }
}

void hvd_info_job_read(hvd_info_lookup lookup, struct hvd_info_job *job)
{
    struct hvd_info_job found = {
        .is_job = lookup(HVD_ENV_SLURM_JOB) != NULL,
        .is_step = lookup(HVD_ENV_SLURM_STEP) != NULL,
        .visible_devices = lookup(HVD_ENV_CUDA_VISIBLE_DEVICES),
    };

    found.is_repeated = found.is_step && read_count(lookup(HVD_ENV_SLURM_LOCAL_ID)) > 0;
    if (found.is_job) {
        found.is_elsewhere = lookup(HVD_ENV_SLURM_NODE) == NULL;
        read_ranks(lookup, &found);
        read_gpus(lookup, &found);
        found.cpus_per_task = read_count(lookup(HVD_ENV_SLURM_CPUS_PER_TASK));
        if (found.cpus_per_task > 0) {
            found.cpus_per_task_source = HVD_ENV_SLURM_CPUS_PER_TASK;
        }
    }
    *job = found;
}

/* CUDA_VISIBLE_DEVICES names no GPU if it is empty, "-1", or Slurm's "NoDevFiles". */
bool hvd_info_job_has_gpus(const struct hvd_info_job *job)
{
    const char *visible = job->visible_devices != NULL ? job->visible_devices : "";

    return job->gpu_source != NULL || isdigit((unsigned char)visible[0]) ||
           strncmp(visible, "GPU-", 4) == 0 || strncmp(visible, "MIG-", 4) == 0;
}
