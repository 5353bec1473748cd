/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a task, as the user, after Slurm's own binding and before exec. */
#include "spank/task_init.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"
#include "spank/task_binding.h"
#include "spank/task_environment.h"
#include "spank/task_topology.h"

/* The variable ends in ":none" if the task keeps all GPUs; it is unset without --gpu-bind. */
static bool is_isolated(struct spank_handle *spank)
{
    static const char none[] = ":none";
    char bind[256];
    size_t length;

    if (spank_getenv(spank, HVD_ENV_SLURM_TRES_BIND, bind, sizeof(bind)) !=
        ESPANK_SUCCESS) {
        return false;
    }
    length = strlen(bind);
    return length > 0 &&
           (length < strlen(none) || strcmp(bind + length - strlen(none), none) != 0);
}

/* In a heterogeneous step the items describe this component only, the variables the whole step. */
static void read_whole_step(struct spank_handle *spank, struct hvd_spank_task *task)
{
    char rank[16];
    char tasks[16];

    if (spank_getenv(spank, HVD_ENV_SLURM_PROCID, rank, sizeof(rank)) == ESPANK_SUCCESS &&
        spank_getenv(spank, HVD_ENV_SLURM_TASKS, tasks, sizeof(tasks)) ==
            ESPANK_SUCCESS &&
        hvd_spank_number_of(tasks) > task->placement.tasks) {
        task->rank = hvd_spank_number_of(rank);
        task->placement.tasks = hvd_spank_number_of(tasks);
    }
}

static int read_placement(struct spank_handle *spank, struct hvd_spank_task *task)
{
    uint32_t nodes;
    uint32_t node;
    uint32_t tasks;
    uint32_t local_size;
    uint32_t rank;
    int local_rank;

    if (spank_get_item(spank, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NODEID, &node) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &local_size) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_GLOBAL_ID, &rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_ID, &local_rank) != ESPANK_SUCCESS) {
        return HVD_ERR_STATE;
    }
    task->placement = (struct hvd_spank_placement){.nodes = (int)nodes,
                                                   .node = (int)node,
                                                   .tasks = (int)tasks,
                                                   .local_rank = local_rank,
                                                   .local_size = (int)local_size};
    task->rank = (int)rank;
    read_whole_step(spank, task);
    return 0;
}

/* Returns 0, or HVD_ERR_STATE when the task must not start. */
static int prepare(struct hvd_spank_plugin *plugin, struct spank_handle *spank)
{
    struct hvd_spank_task task = {.spank = spank, .plugin = plugin};

    if (plugin->step.is_shell) {
        hvd_spank_task_export_front_end(&task);
        return 0;
    }
    if (!plugin->options.is_on) {
        return 0;
    }
    if (plugin->refusal.status != 0 || plugin->step.was_refused_by_srun) {
        return HVD_ERR_STATE;
    }
    if (read_placement(spank, &task) != 0) {
        slurm_error("hvd: Slurm does not tell this task its rank");
        return HVD_ERR_STATE;
    }
    if (hvd_spank_task_topology(plugin, &task) != 0) {
        return HVD_ERR_STATE;
    }
    task.has_gpus = plugin->step.gpus[0] != '\0';
    task.is_isolated = task.has_gpus && is_isolated(spank);
    hvd_spank_task_show_gpus(&task);
    hvd_spank_task_bind(&task);
    hvd_spank_task_export(&task);
    return 0;
}

/* Slurm ignores the failure of an optional plugin. */
void hvd_spank_task_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank)
{
    if (prepare(plugin, spank) != 0) {
        _exit(EXIT_FAILURE);
    }
}
