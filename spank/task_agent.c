/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a task that starts the ranks of its node. torchrun takes the default of an
 * option --NAME from the variable PET_NAME. */
#include "spank/task_agent.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "spank/launcher.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"
#include "spank/task_binding.h"
#include "spank/task_init.h"
#include "spank/task_variables.h"

/* --- which tasks are agents --- */

static void warn_of_several(const struct hvd_spank_task *task)
{
    slurm_error("hvd: %s starts the ranks of its node itself, but Slurm starts it %d "
                "times on this node: use --ntasks-per-node=1, or start the script "
                "without %s",
                task->launcher, task->placement.local_size, task->launcher);
}

void hvd_spank_task_agent_find(struct hvd_spank_task *task)
{
    const struct hvd_spank_options *options = &task->plugin->options;
    const struct hvd_spank_placement *placement = &task->placement;
    char **arguments = NULL;
    int count = 0;

    if (options->tasks == HVD_SPANK_TASKS_KEEP || options->is_elastic) {
        return;
    }
    if (spank_get_item(task->spank, S_JOB_ARGV, &count, &arguments) == ESPANK_SUCCESS) {
        task->launcher = hvd_spank_launcher_of(count, arguments);
        task->is_alone = hvd_spank_launcher_is_alone(count, arguments);
        task->typed_ranks = hvd_spank_launcher_ranks(count, arguments);
    }
    task->is_agent = (options->tasks == HVD_SPANK_TASKS_NODE || task->launcher != NULL) &&
                     placement->local_size == 1 && placement->tasks == placement->nodes;
    if (task->launcher != NULL && placement->local_size > 1 && task->rank == 0) {
        warn_of_several(task);
    }
}

/* --- the number of ranks --- */

static int get_number(const struct hvd_spank_task *task, const char *name)
{
    char text[16];

    return spank_getenv(task->spank, name, text, sizeof(text)) == ESPANK_SUCCESS
               ? hvd_spank_number_of(text)
               : 0;
}

static int count_entries(const char *list)
{
    int count = list[0] != '\0';

    for (; *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

static int count_gpus(const struct hvd_spank_task *task)
{
    char visible[4096];

    if (!task->has_gpus) {
        return 0;
    }
    if (spank_getenv(task->spank, HVD_ENV_CUDA_VISIBLE_DEVICES, visible,
                     sizeof(visible)) == ESPANK_SUCCESS) {
        return count_entries(visible);
    }
    return count_entries(task->plugin->step.gpus);
}

/* Returns the part of the step's ranks that Slurm would have started on this node: if
 * they cannot be divided evenly, the first nodes get one more. */
static int share_of_tasks(const struct hvd_spank_task *task)
{
    const int tasks = get_number(task, HVD_ENV_AGENT_RANKS);
    const int nodes = task->placement.nodes;

    return tasks / nodes + (task->placement.node < tasks % nodes ? 1 : 0);
}

/* Returns the number of ranks that the agent starts unless the user gives torchrun
 * another number: one for each GPU, or as many as Slurm would have started. */
static int count_ranks(const struct hvd_spank_task *task)
{
    int ranks = count_gpus(task);

    ranks = ranks > 0 ? ranks : share_of_tasks(task);
    return ranks > 0 ? ranks : 1;
}

/* --- the environment --- */

static void set_number(const struct hvd_spank_task *task, const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    hvd_spank_task_set_default(task, name, text);
}

/* Returns the number of ranks that share the node's cores: from torchrun's command line,
 * else from PET_NPROC_PER_NODE, which the user or hvd has set. Returns -1 or 0 if the
 * value is a word, such as gpu. */
static int sharing_ranks(const struct hvd_spank_task *task)
{
    return task->typed_ranks != 0 ? task->typed_ranks
                                  : get_number(task, HVD_ENV_PET_NPROC_PER_NODE);
}

void hvd_spank_task_agent_prepare(const struct hvd_spank_task *task)
{
    const int ranks = count_ranks(task);
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    if (task->has_gpus) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_CUDA_DEVICE_ORDER, "PCI_BUS_ID",
                              false);
    }
    if (!task->is_alone) {
        set_number(task, HVD_ENV_PET_NNODES, task->placement.nodes);
        set_number(task, HVD_ENV_PET_NODE_RANK, task->rank);
    }
    set_number(task, HVD_ENV_PET_NPROC_PER_NODE, ranks);
    if (task->plugin->options.is_verbose) {
        fprintf(stderr, "hvd: %s: one task, which starts the ranks of this node: %d\n",
                host, task->typed_ranks > 0 ? task->typed_ranks : ranks);
    }
    hvd_spank_task_bind_agent(task, sharing_ranks(task), ranks);
}

static void copy_default(const struct hvd_spank_task *task, const char *from,
                         const char *to)
{
    char text[256];

    if (spank_getenv(task->spank, from, text, sizeof(text)) == ESPANK_SUCCESS) {
        hvd_spank_task_set_default(task, to, text);
    }
}

void hvd_spank_task_agent_export_master(const struct hvd_spank_task *task)
{
    if (!task->is_alone) {
        copy_default(task, HVD_ENV_MASTER_ADDRESS, HVD_ENV_PET_MASTER_ADDRESS);
        copy_default(task, HVD_ENV_MASTER_PORT, HVD_ENV_PET_MASTER_PORT);
    }
}
