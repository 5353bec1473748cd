/* SPDX-License-Identifier: Apache-2.0 */
/* The number of tasks: one per GPU where the user leaves it open, and never more. */
#include "spank/srun_tasks.h"

#include <stdio.h>

#include "spank/job.h"
#include "spank/tasks.h"

static bool offer_number(struct hvd_settings *settings, enum hvd_setting setting,
                         int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    return hvd_settings_offer(settings, setting, text);
}

/* srun has already computed its number of tasks from its options, so both are needed. */
int hvd_srun_ask_tasks(struct hvd_launch *launch)
{
    struct hvd_settings *settings = &launch->srun.settings;
    struct hvd_job job;
    int tasks = 0;
    int nodes;

    if (launch->options.keep_tasks || hvd_job_has_tasks(settings)) {
        return 0;
    }
    hvd_job_read(settings, &job);
    if (hvd_tasks_per_node(&job, &tasks, &launch->refusal) != 0) {
        return launch->refusal.status;
    }
    nodes = hvd_job_step_nodes(settings);
    if (tasks > 0 && nodes > 0 &&
        offer_number(settings, HVD_SETTING_TASKS_PER_NODE, tasks) &&
        offer_number(settings, HVD_SETTING_TASKS, tasks * nodes)) {
        launch->srun.asked_tasks = tasks;
    }
    return 0;
}

/* Slurm gives the first nodes one task more when it cannot deal them out evenly, so that one
 * node has at least this many. Where nodes may differ in GPUs, each checks for itself. */
int hvd_srun_check_gpus(struct hvd_launch *launch, int tasks, int nodes)
{
    const struct hvd_settings *settings = &launch->srun.settings;
    int most = nodes > 0 ? (tasks + nodes - 1) / nodes : 0;
    struct hvd_job job;
    int gpus;

    hvd_job_read(settings, &job);
    gpus = job.gpus_per_node;
    if (gpus == 0 || most <= gpus ||
        (job.gpus != 0 && job.gpus != (long)gpus * job.nodes) ||
        hvd_settings_has(settings, "gpus-per-task") ||
        hvd_settings_has(settings, "ntasks-per-gpu")) {
        return 0;
    }
    return hvd_fail(
        &launch->refusal, HVD_ERR_ARG,
        "%d tasks on %d nodes, but %d GPUs per node: use --ntasks-per-node=%d, "
        "or --gres=none for ranks without GPUs",
        tasks, nodes, gpus, gpus);
}

int hvd_srun_check_answer(struct hvd_launch *launch, int tasks, int nodes)
{
    int asked = launch->srun.asked_tasks;

    if (launch->srun.components > 1 || asked == 0 || tasks == asked * nodes) {
        return 0;
    }
    return hvd_fail(&launch->refusal, HVD_ERR_ARG,
                    "one task per GPU was asked for, %d on each of %d nodes, but Slurm "
                    "starts %d: use --ntasks-per-node=%d",
                    asked, nodes, tasks, asked);
}

bool hvd_srun_has_open_tasks(const struct hvd_launch *launch)
{
    const struct hvd_settings *settings = &launch->srun.settings;

    return settings->options != NULL && launch->srun.asked_tasks == 0 &&
           !launch->options.keep_tasks && !hvd_job_has_tasks(settings);
}
