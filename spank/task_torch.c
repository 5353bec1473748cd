/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the variables that scripts of torch.distributed, Lightning, Accelerate, DeepSpeed
 * and Composer read. */
#include "spank/task_torch.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/route.h"
#include "spank/slurm_numbers.h"
#include "spank/task_init.h"
#include "spank/task_variables.h"

static bool get_variable(const struct hvd_spank_task *task, const char *name, char *text,
                         size_t bytes)
{
    return spank_getenv(task->spank, name, text, (int)bytes) == ESPANK_SUCCESS &&
           text[0] != '\0';
}

/* Returns the number of this node. In a heterogeneous step, SPANK's item counts the nodes
 * of this component alone. */
static int node_of(const struct hvd_spank_task *task)
{
    char text[16];
    int node = task->placement.node;

    if (get_variable(task, HVD_ENV_SLURM_NODEID, text, sizeof(text)) &&
        hvd_spank_number_of(text) > node) {
        node = hvd_spank_number_of(text);
    }
    return node;
}

/* Finds the interface for torch: the user's choice, else the one on the network of the
 * nodes' Slurm addresses. If srun runs on another node, the route to it leads over that
 * network. If srun runs here, its address is this node's address on that network. */
static bool find_interface(const struct hvd_spank_task *task, char *name, size_t bytes)
{
    char peer[64];
    struct hvd_route route;

    if (get_variable(task, HVD_ENV_IFACE, name, bytes) ||
        get_variable(task, HVD_ENV_GLOO_IFACE, name, bytes)) {
        return true;
    }
    if (!get_variable(task, HVD_ENV_SLURM_SRUN_HOST, peer, sizeof(peer)) ||
        hvd_route_find(peer, &route, NULL) != 0 || strcmp(route.interface, "lo") == 0) {
        return false;
    }
    snprintf(name, bytes, "%s", route.interface);
    return true;
}

/* Names the interface for NCCL and Gloo. NCCL treats each name as a prefix unless "="
 * precedes the list. */
static void export_interface(const struct hvd_spank_task *task)
{
    char name[256];
    char exact[sizeof(name) + 1];

    if (task->placement.tasks == task->placement.local_size ||
        !find_interface(task, name, sizeof(name))) {
        return;
    }
    snprintf(exact, sizeof(exact), "=%s", name);
    hvd_spank_task_set_default(task, HVD_ENV_NCCL_IFNAME, exact);
    hvd_spank_task_set_default(task, HVD_ENV_TORCH_GLOO_IFNAME, name);
}

/* True if all nodes of the step have as many tasks as this one. */
static bool is_even(const struct hvd_spank_task *task)
{
    const struct hvd_spank_placement *placement = &task->placement;
    struct hvd_spank_count_run run;
    char counts[4096];
    const char *cursor = counts;

    return get_variable(task, HVD_ENV_SLURM_STEP_TASKS_PER_NODE, counts,
                        sizeof(counts)) &&
           hvd_spank_count_next(&cursor, &run) && *cursor == '\0' &&
           run.nodes == placement->nodes && run.value == placement->local_size &&
           (long)run.nodes * run.value == placement->tasks;
}

/* Sets SLURM_NTASKS_PER_NODE, which Slurm sets only if the user chose --ntasks-per-node.
 * Without it, Lightning refuses to run in a step of several tasks. */
static void export_tasks_per_node(const struct hvd_spank_task *task)
{
    char text[16];

    if (is_even(task)) {
        snprintf(text, sizeof(text), "%d", task->placement.local_size);
        hvd_spank_task_set_default(task, HVD_ENV_SLURM_NTASKS_PER_NODE, text);
    }
}

static void export_ranks(const struct hvd_spank_task *task)
{
    hvd_spank_task_export_number(task, HVD_ENV_TORCH_RANK, task->rank);
    hvd_spank_task_export_number(task, HVD_ENV_TORCH_SIZE, task->placement.tasks);
    hvd_spank_task_export_number(task, HVD_ENV_TORCH_LOCAL_RANK,
                                 task->placement.local_rank);
    hvd_spank_task_export_number(task, HVD_ENV_TORCH_LOCAL_SIZE,
                                 task->placement.local_size);
}

void hvd_spank_task_export_torch(const struct hvd_spank_task *task)
{
    if (!task->is_agent) {
        export_ranks(task);
    }
    hvd_spank_task_export_number(task, HVD_ENV_TORCH_NODE, node_of(task));
    hvd_spank_task_export_number(task, HVD_ENV_NODE_RANK, node_of(task));
    export_tasks_per_node(task);
    export_interface(task);
}
