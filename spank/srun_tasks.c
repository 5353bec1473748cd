/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the number of tasks: one per GPU if the user leaves it open, and never more; or
 * one per node, if the program starts the ranks of its node. */
#include "spank/srun_tasks.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"
#include "spank/tasks_per_node.h"

/* A user who sets any of these options chooses the number of tasks. */
static const char *const task_options[] = {
    "ntasks",         "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "ntasks-per-tres",
};

static const char *env_text(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? text : "";
}

/* Returns the GPUs per node that srun's options name; 0: unknown or none. */
static int typed_gpus(const struct hvd_spank_srun_options *srun_options)
{
    char text[128];

    hvd_spank_srun_options_get(srun_options, "gpus-per-node", text, sizeof(text));
    if (text[0] == '\0') {
        hvd_spank_srun_options_get(srun_options, "gres", text, sizeof(text));
    }
    return hvd_spank_gres_count(text);
}

/* Reads the allocation. Its GPUs are those of the step if srun has an option for them,
 * else those of the job. */
static void read_allocation(const struct hvd_spank_srun_options *srun_options,
                            struct hvd_spank_allocation *allocation)
{
    memset(allocation, 0, sizeof(*allocation));
    allocation->nodes = hvd_spank_number_of(env_text(HVD_ENV_SLURM_JOB_NODES));
    if (!hvd_spank_srun_options_has(srun_options, "overcommit")) {
        allocation->cpus_per_node =
            hvd_spank_count_least(getenv(HVD_ENV_SLURM_JOB_CPUS_PER_NODE));
    }
    allocation->cpus_per_task =
        hvd_spank_srun_options_has(srun_options, "cpus-per-task")
            ? hvd_spank_srun_options_number(srun_options, "cpus-per-task")
            : hvd_spank_number_of(env_text(HVD_ENV_SLURM_CPUS_PER_TASK));
    if (hvd_spank_srun_options_has(srun_options, "gres") ||
        hvd_spank_srun_options_has(srun_options, "gpus-per-node")) {
        allocation->gpus_per_node = typed_gpus(srun_options);
        return;
    }
    allocation->gpus_per_node = hvd_spank_number_of(env_text(HVD_ENV_SLURM_GPUS_ON_NODE));
    if (allocation->gpus_per_node == 0) {
        allocation->gpus_per_node =
            hvd_spank_gres_count(env_text(HVD_ENV_SLURM_GPUS_PER_NODE));
    }
    allocation->gpus = hvd_spank_gres_count(env_text(HVD_ENV_SLURM_GPUS));
}

/* True when the user chose the number of tasks with any option; not when hvd set it. */
static bool has_tasks(const struct hvd_spank_srun_options *srun_options)
{
    for (size_t i = 0; i < sizeof(task_options) / sizeof(task_options[0]); i++) {
        if (hvd_spank_srun_options_has(srun_options, task_options[i]) &&
            !hvd_spank_srun_options_is_default(srun_options, task_options[i])) {
            return true;
        }
    }
    return false;
}

/* Returns the number of nodes that srun will use; 0 if that is a range, or unknown.
 * Outside of a job, Slurm's default is one node. */
static int step_nodes(const struct hvd_spank_srun_options *srun_options)
{
    if (hvd_spank_srun_options_has(srun_options, "nodes")) {
        return hvd_spank_srun_options_number(srun_options, "nodes");
    }
    return getenv(HVD_ENV_SLURM_JOB) == NULL ? 1 : 0;
}

static bool set_number(struct hvd_spank_srun_options *srun_options,
                       enum hvd_spank_srun_option option, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    return hvd_spank_srun_options_set_default(srun_options, option, text);
}

/* --- one task per node --- */

/* True if each node should get one task. If the job's environment has a number of tasks,
 * it is taken as the number of ranks. Only a number on srun's own command line is the
 * number of tasks. */
static bool wants_agents(const struct hvd_spank_plugin *plugin)
{
    const struct hvd_spank_options *options = &plugin->options;

    return !plugin->srun.command.has_tasks &&
           (options->tasks == HVD_SPANK_TASKS_NODE ||
            (options->tasks == HVD_SPANK_TASKS_AUTO && !options->is_elastic &&
             plugin->srun.command.launcher != NULL));
}

/* Passes the number of tasks on to the tasks, as the number of ranks to start on nodes
 * without GPUs. Then resets the options for it, so that srun does not start that many
 * tasks. */
static void take_ranks(struct hvd_spank_srun_options *srun_options)
{
    char ranks[16];

    if (has_tasks(srun_options)) {
        snprintf(ranks, sizeof(ranks), "%d",
                 hvd_spank_srun_options_number(srun_options, "ntasks"));
        setenv(HVD_ENV_AGENT_RANKS, ranks, 1);
    }
    for (size_t i = 0; i < sizeof(task_options) / sizeof(task_options[0]); i++) {
        if (hvd_spank_srun_options_has(srun_options, task_options[i])) {
            srun_options->reset(srun_options->options, task_options[i]);
        }
    }
}

/* Replaces the GPUs per task, which srun took from the job, by all GPUs of the job on a
 * node. A reset alone would not do: without any request for GPUs, srun takes the job's
 * GPUs per task again. */
static void take_all_gpus(struct hvd_spank_srun_options *srun_options)
{
    const int gpus = hvd_spank_number_of(env_text(HVD_ENV_SLURM_GPUS_ON_NODE));
    char per_task[128];

    hvd_spank_srun_options_get(srun_options, "gpus-per-task", per_task, sizeof(per_task));
    if (gpus > 0 && per_task[0] != '\0' &&
        strcmp(per_task, env_text(HVD_ENV_SLURM_GPUS_PER_TASK)) == 0) {
        srun_options->reset(srun_options->options, "gpus-per-task");
        set_number(srun_options, HVD_SPANK_SRUN_GPUS_PER_NODE, gpus);
    }
}

/* Resets the CPUs per task, which hvd took from the job, and with them --exact, which
 * they imply: the task needs the CPUs of all ranks. */
static void take_all_cpus(struct hvd_spank_srun_options *srun_options)
{
    if (hvd_spank_srun_options_is_default(srun_options, "cpus-per-task")) {
        srun_options->reset(srun_options->options, "cpus-per-task");
        if (!hvd_spank_srun_options_has(srun_options, "exact")) {
            srun_options->reset(srun_options->options, "exact");
        }
    }
}

static void request_agents(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun_options *srun_options = &plugin->srun.options;
    const int nodes = step_nodes(srun_options);

    unsetenv(HVD_ENV_AGENT_RANKS);
    if (srun_options->options == NULL || nodes == 0) {
        return;
    }
    take_ranks(srun_options);
    take_all_gpus(srun_options);
    take_all_cpus(srun_options);
    if (!set_number(srun_options, HVD_SPANK_SRUN_TASKS_PER_NODE, 1) ||
        !set_number(srun_options, HVD_SPANK_SRUN_TASKS, nodes)) {
        return;
    }
    plugin->srun.requested_tasks = 1;
    plugin->srun.has_agents = true;
    if (plugin->options.tasks == HVD_SPANK_TASKS_AUTO) {
        slurm_info("hvd: %s starts the ranks of its node itself, so it is started once "
                   "per node; to choose the number of tasks yourself, use "
                   "--ntasks-per-node=N or --hvd=tasks=keep",
                   plugin->srun.command.launcher);
    }
}

/* --- one task per GPU --- */

/* Requests one task per GPU. srun has already computed its number of tasks from its
 * options, so both options must be set. */
static int request(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun_options *srun_options = &plugin->srun.options;
    struct hvd_spank_allocation allocation;
    int tasks = 0;
    int nodes;

    if (wants_agents(plugin)) {
        request_agents(plugin);
        return 0;
    }
    if (plugin->options.tasks != HVD_SPANK_TASKS_AUTO || has_tasks(srun_options)) {
        return 0;
    }
    read_allocation(srun_options, &allocation);
    if (hvd_spank_tasks_per_node(&allocation, &tasks, &plugin->refusal) != 0) {
        return plugin->refusal.status;
    }
    nodes = step_nodes(srun_options);
    if (tasks > 0 && nodes > 0 &&
        set_number(srun_options, HVD_SPANK_SRUN_TASKS_PER_NODE, tasks) &&
        set_number(srun_options, HVD_SPANK_SRUN_TASKS, tasks * nodes)) {
        plugin->srun.requested_tasks = tasks;
    }
    return 0;
}

/* Refuses more tasks than GPUs on a node. If Slurm cannot distribute the tasks evenly,
 * the first nodes get one task more, so at least one node has `most` tasks. If the nodes
 * may differ in GPUs, each node checks for itself later. */
static int check_gpus(struct hvd_spank_plugin *plugin)
{
    const struct hvd_spank_srun_options *srun_options = &plugin->srun.options;
    int tasks = hvd_spank_srun_options_number(srun_options, "ntasks");
    int nodes = step_nodes(srun_options);
    int most = nodes > 0 ? (tasks + nodes - 1) / nodes : 0;
    struct hvd_spank_allocation allocation;
    int gpus;

    read_allocation(srun_options, &allocation);
    gpus = allocation.gpus_per_node;
    if (gpus == 0 || most <= gpus ||
        (allocation.gpus != 0 && allocation.gpus != (long)gpus * allocation.nodes) ||
        hvd_spank_srun_options_has(srun_options, "gpus-per-task") ||
        hvd_spank_srun_options_has(srun_options, "ntasks-per-gpu")) {
        return 0;
    }
    return hvd_fail(
        &plugin->refusal, HVD_ERR_ARG,
        "%d tasks on %d node%s, but %d GPU%s per node: use --ntasks-per-node=%d, "
        "or --gres=none for ranks without GPUs",
        tasks, nodes, hvd_number_plural(nodes), gpus, hvd_number_plural(gpus), gpus);
}

int hvd_spank_srun_tasks_settle(struct hvd_spank_plugin *plugin)
{
    int status;

    if (plugin->srun.components == 1) {
        hvd_spank_srun_command_read(&plugin->srun.command);
    } else {
        plugin->srun.command = (struct hvd_spank_srun_command){0};
    }
    status = request(plugin);
    return status != 0 ? status : check_gpus(plugin);
}

int hvd_spank_srun_tasks_check(struct hvd_spank_plugin *plugin, int tasks, int nodes)
{
    const char *launcher = plugin->srun.command.launcher;
    int requested = plugin->srun.requested_tasks;

    if (plugin->srun.components > 1) {
        return 0;
    }
    if (plugin->options.is_elastic && plugin->options.tasks == HVD_SPANK_TASKS_AUTO &&
        launcher != NULL) {
        return hvd_fail(&plugin->refusal, HVD_ERR_UNSUPPORTED,
                        "--hvd=elastic starts the ranks of a job, but %s starts ranks "
                        "itself: start the script without %s, or leave out elastic and "
                        "use the restarts of %s, such as torchrun --max-restarts",
                        launcher, launcher, launcher);
    }
    if (plugin->options.tasks == HVD_SPANK_TASKS_NODE && tasks != nodes) {
        return hvd_fail(&plugin->refusal, HVD_ERR_ARG,
                        "--hvd=tasks=node needs one task on each node, but Slurm starts "
                        "%d on %d: use --ntasks-per-node=1",
                        tasks, nodes);
    }
    if (plugin->srun.has_agents && tasks != nodes) {
        return hvd_fail(&plugin->refusal, HVD_ERR_ARG,
                        "hvd requested one task per node, on %d node%s, but Slurm starts "
                        "%d: use --ntasks-per-node=1",
                        nodes, hvd_number_plural(nodes), tasks);
    }
    if (requested == 0 || tasks == requested * nodes) {
        return 0;
    }
    return hvd_fail(
        &plugin->refusal, HVD_ERR_ARG,
        "hvd requested one task per GPU, %d per node, on %d node%s, but Slurm "
        "starts %d: use --ntasks-per-node=%d",
        requested, nodes, hvd_number_plural(nodes), tasks, requested);
}

bool hvd_spank_srun_tasks_are_open(const struct hvd_spank_plugin *plugin)
{
    const struct hvd_spank_srun_options *srun_options = &plugin->srun.options;

    return srun_options->options != NULL && plugin->srun.requested_tasks == 0 &&
           plugin->options.tasks == HVD_SPANK_TASKS_AUTO && !has_tasks(srun_options);
}
