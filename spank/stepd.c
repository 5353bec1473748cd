/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside slurmstepd, before its tasks exist. */
#include "spank/stepd.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "spank/plugin.h"

/* Copies a variable; the text is empty if it is unset or longer than any valid value. */
static void copy_variable(struct spank_handle *spank, const char *name, char *value,
                          size_t bytes)
{
    if (spank_getenv(spank, name, value, (int)bytes) != ESPANK_SUCCESS) {
        value[0] = '\0';
    }
}

void hvd_spank_stepd_init_post_opt(struct hvd_spank_plugin *plugin,
                                   struct spank_handle *spank)
{
    struct hvd_spank_job_step *step = &plugin->step;
    char request[8];
    char bind[64];
    char error[8];
    uint32_t id = 0;

    if (!plugin->options.is_on) {
        return;
    }
    if (spank_get_item(spank, S_JOB_STEPID, &id) != ESPANK_SUCCESS) {
        plugin->options.is_on = false;
        return;
    }
    if (id >= SLURM_INTERACTIVE_STEP) {
        step->is_shell = id != SLURM_EXTERN_CONT && plugin->refusal.status == 0;
        plugin->options.is_on = false;
        return;
    }
    copy_variable(spank, HVD_ENV_SLURM_STEP_GPUS, step->gpus, sizeof(step->gpus));
    copy_variable(spank, HVD_ENV_CUDA_VISIBLE_DEVICES, step->visible,
                  sizeof(step->visible));
    copy_variable(spank, HVD_ENV_SLURM_CPU_BIND_TYPE, bind, sizeof(bind));
    copy_variable(spank, HVD_ENV_REQUEST, request, sizeof(request));
    step->has_open_tasks = strcmp(request, HVD_REQUEST_TASKS_OPEN) == 0;
    step->is_bound_by_user = bind[0] != '\0';
    step->was_refused_by_srun = spank_getenv(spank, HVD_ENV_LAUNCH_ERROR, error,
                                             sizeof(error)) != ESPANK_ENV_NOEXIST;
}

void hvd_spank_stepd_user_init(struct hvd_spank_plugin *plugin,
                               struct spank_handle *spank)
{
    struct hvd_spank_job_step *step = &plugin->step;
    uint32_t tasks = 0;
    uint32_t node = 0;

    if (!plugin->options.is_on || step->was_refused_by_srun) {
        return;
    }
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS) {
        step->tasks = (int)tasks;
    }
    step->is_first_node =
        spank_get_item(spank, S_JOB_NODEID, &node) == ESPANK_SUCCESS && node == 0;
    if (plugin->refusal.status != 0) {
        slurm_error("hvd: %s", plugin->refusal.text);
    }
}
