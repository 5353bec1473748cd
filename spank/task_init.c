/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a task, as the user, after Slurm's own binding and before exec. */
#include "spank/task_init.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"
#include "gpu_binding/gpu_list.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"
#include "spank/task_agent.h"
#include "spank/task_binding.h"
#include "spank/task_environment.h"

/* True if --gpu-bind gives each task its own GPUs. Slurm's variable ends in ":none" if
 * each task keeps all GPUs, and is unset without --gpu-bind. */
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

/* In a heterogeneous step, takes the rank and the number of tasks from Slurm's variables,
 * because SPANK's items describe only this component there. */
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

static int check_gpus(const struct hvd_spank_task *task, const char *host)
{
    const struct hvd_spank_job_step *step = &task->plugin->step;
    const bool is_first = task->placement.local_rank == 0;
    struct hvd_gpu_list list;

    if (step->gpus[0] == '\0' ||
        hvd_gpu_list_parse(&step->topology, step->gpus, &list, NULL) != 0) {
        return 0;
    }
    if (step->tasks > list.count) {
        if (is_first) {
            slurm_error("hvd: %s: %d tasks but %d GPUs: use --ntasks-per-node=%d", host,
                        step->tasks, list.count, list.count);
        }
        return HVD_ERR_ARG;
    }
    if (is_first && !task->is_agent && step->has_open_tasks && step->is_first_node &&
        step->tasks < list.count) {
        slurm_error("hvd: %s: %d task%s for %d GPUs, because srun was not told of the "
                    "GPUs: use srun --ntasks-per-node=%d, or --hvd=tasks=keep to keep "
                    "this number",
                    host, step->tasks, hvd_number_plural(step->tasks), list.count,
                    list.count);
    }
    return 0;
}

static void check_front_end(const struct hvd_spank_plugin *plugin, const char *host)
{
    const char *dir = plugin->plugstack.python_dir;

    if (dir[0] != '\0' && access(dir, R_OK | X_OK) != 0) {
        slurm_error(
            "hvd: %s: cannot read %s: %m; install hvd on this node as on the others",
            host, dir);
    }
}

/* Looks for the front end, reads the topology into plugin->step, where it stays until
 * exec, and compares the number of tasks with the GPUs. Returns HVD_ERR_ARG if the task
 * must not start. Returns 0 even if the topology cannot be read: the task then keeps
 * Slurm's binding. The first task of a node prints the reason. */
static int load_topology(struct hvd_spank_plugin *plugin,
                         const struct hvd_spank_task *task)
{
    const char *file = plugin->plugstack.topology;
    const struct hvd_topology_source source = {.xml_file = file[0] != '\0' ? file : NULL};
    const bool is_first = task->placement.local_rank == 0;
    struct hvd_error err;
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    if (is_first) {
        check_front_end(plugin, host);
    }
    if (hvd_topology_load(&plugin->step.topology, &source, &err) != 0) {
        if (is_first) {
            slurm_error("hvd: %s: ranks keep the binding that Slurm chose: %s", host,
                        err.text);
        }
        return 0;
    }
    plugin->step.has_topology = true;
    return check_gpus(task, host);
}

/* Binds the task and exports its environment; a batch script only gets the front end.
 * Returns 0, or HVD_ERR_STATE when the task must not start. */
static int prepare_task(struct hvd_spank_plugin *plugin, struct spank_handle *spank)
{
    struct hvd_spank_task task = {.spank = spank, .plugin = plugin};
    struct hvd_error err = {0};
    char host[65] = "";

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
        slurm_error("hvd: Slurm did not give this task its rank and node: build hvd "
                    "against this release of Slurm, or use --hvd=off");
        return HVD_ERR_STATE;
    }
    hvd_spank_task_agent_find(&task);
    if (load_topology(plugin, &task) != 0) {
        return HVD_ERR_STATE;
    }
    task.has_gpus = plugin->step.gpus[0] != '\0';
    task.is_isolated = task.has_gpus && is_isolated(spank);
    hvd_spank_task_show_gpus(&task);
    if (task.is_agent) {
        hvd_spank_task_agent_prepare(&task);
    } else {
        hvd_spank_task_bind(&task);
    }
    if (hvd_spank_task_export_nccl(&task, &err) != 0) {
        if (task.placement.local_rank == 0) {
            gethostname(host, sizeof(host) - 1);
            slurm_error("hvd: %s: %s", host, err.text);
        }
        return HVD_ERR_STATE;
    }
    hvd_spank_task_export(&task);
    return 0;
}

/* A task that must not start exits here, because Slurm ignores the failure of an optional
 * plugin. */
void hvd_spank_task_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank)
{
    if (prepare_task(plugin, spank) != 0) {
        _exit(EXIT_FAILURE);
    }
}
