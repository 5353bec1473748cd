/* SPDX-License-Identifier: Apache-2.0 */
/* The node as a task finds it. */
#include "spank/task_topology.h"

#include <slurm/spank.h>
#include <unistd.h>

#include "gpu_binding/gpu_list.h"
#include "spank/plugin.h"
#include "spank/task_init.h"

static int check_gpus(const struct hvd_spank_plugin *plugin, const char *host,
                      bool is_first)
{
    const struct hvd_spank_job_step *step = &plugin->step;
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
    if (is_first && step->has_open_tasks && step->is_first_node &&
        step->tasks < list.count) {
        slurm_error("hvd: %s: %d task%s for %d GPUs, because srun was not told of the "
                    "GPUs: use srun --ntasks-per-node=%d, or --hvd=tasks=keep to keep "
                    "this number",
                    host, step->tasks, step->tasks == 1 ? "" : "s", list.count,
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

int hvd_spank_task_topology(struct hvd_spank_plugin *plugin,
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
    return check_gpus(plugin, host, is_first);
}
