/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside srun, as the user. */
#include "spank/srun.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"
#include "spank/srun_rendezvous.h"
#include "spank/srun_inherited.h"
#include "spank/srun_tasks.h"

void hvd_spank_srun_init(struct hvd_spank_plugin *plugin)
{
    const char *inherited;
    struct hvd_spank_options options = {0};

    hvd_spank_srun_inherited_drop_service();
    hvd_spank_srun_inherited_drop_layout();
    if (plugin->plugstack.is_default_on) {
        setenv(HVD_ENV_SLURM_OPTION, "on", 0);
    }
    inherited = getenv(HVD_ENV_SLURM_OPTION);
    if (inherited == NULL || hvd_spank_srun_options_find(&plugin->srun.options) ||
        plugin->plugstack.keep_mpi) {
        return;
    }
    /* Without srun's functions, PMIx can only be chosen here, before srun reads its
     * options, and only if --hvd came with the job. */
    if (hvd_spank_options_parse(inherited, &options, NULL) == 0 && options.is_on) {
        setenv(HVD_ENV_SLURM_MPI_TYPE, "pmix", 0);
    }
}

/* --- the options of srun --- */

/* Asks srun for PMIx, and to end the step when a rank fails, because the others would
 * wait for it. */
static void set_for_static_job(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun_options *srun_options = &plugin->srun.options;

    if (!plugin->plugstack.keep_mpi && hvd_spank_srun_options_know_pmix(srun_options)) {
        hvd_spank_srun_inherited_drop_mpi(srun_options);
        hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_MPI, "pmix");
    }
    hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_KILL_ON_BAD_EXIT,
                                       "1");
}

/* Asks srun to let the step run on when a task or node fails or a task ends early. Turns
 * PMIx off, because it would end the step when a rank that uses it dies. */
static void set_for_elastic_job(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun_options *srun_options = &plugin->srun.options;

    hvd_spank_srun_inherited_drop_mpi(srun_options);
    hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_MPI, "none");
    hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_KILL_ON_BAD_EXIT,
                                       "0");
    hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_NO_KILL, "set");
    hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_WAIT, "0");
}

/* True if the user chose how GPUs are bound to tasks. From Slurm 23.11 on, a job with
 * --gpus-per-task passes on a binding that Slurm made, "gres/gpu:per_task:N", as if the
 * user had typed it; that one does not count. */
static bool has_asked_for_binding(const struct hvd_spank_srun_options *srun_options)
{
    static const char of_slurm[] = "gres/gpu:per_task:";
    const char *inherited = getenv(HVD_ENV_SLURM_JOB_TRES_BIND);
    char used[256];

    hvd_spank_srun_options_get(srun_options, "tres-bind", used, sizeof(used));
    return used[0] != '\0' && (inherited == NULL || strcmp(used, inherited) != 0 ||
                               strncmp(used, of_slurm, strlen(of_slurm)) != 0);
}

/* Sets all that the user left open: PMIx and its time limit, the end of the step when a
 * rank fails, all GPUs visible in each task, and the job's CPUs per task. */
static void set_defaults(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun_options *srun_options = &plugin->srun.options;
    const char *cpus = getenv(HVD_ENV_SLURM_CPUS_PER_TASK);
    char timeout[16];

    hvd_spank_srun_inherited_drop_binding(srun_options);
    if (plugin->options.is_elastic) {
        set_for_elastic_job(plugin);
    } else {
        set_for_static_job(plugin);
    }
    if (!plugin->options.keep_gpus && !has_asked_for_binding(srun_options)) {
        hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_GPU_BIND, "none");
    }
    if (cpus != NULL && hvd_spank_number_of(cpus) > 0) {
        hvd_spank_srun_options_set_default(srun_options, HVD_SPANK_SRUN_CPUS_PER_TASK,
                                           cpus);
    }
    snprintf(timeout, sizeof(timeout), "%d", plugin->plugstack.timeout_s);
    hvd_spank_srun_environment_set_default(&plugin->srun.environment,
                                           HVD_SPANK_SRUN_ENV_PMIX_TIMEOUT, timeout);
    hvd_spank_srun_environment_set_default(&plugin->srun.environment,
                                           HVD_SPANK_SRUN_ENV_PMIX_FENCE, "ring");
    hvd_spank_srun_environment_set_default(
        &plugin->srun.environment, HVD_SPANK_SRUN_ENV_REQUEST, HVD_REQUEST_TASKS_KNOWN);
}

/* Undoes set_defaults, except for options that the user has changed since. */
static void reset_defaults(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun *srun = &plugin->srun;

    hvd_spank_srun_options_reset(&srun->options);
    hvd_spank_srun_environment_reset(&srun->environment);
}

/* --- callbacks --- */

void hvd_spank_srun_option(struct hvd_spank_plugin *plugin)
{
    hvd_spank_srun_inherited_drop_task();
    reset_defaults(plugin);
    plugin->srun.requested_tasks = 0;
    plugin->srun.has_agents = false;
    if (!plugin->options.is_on && getenv(HVD_ENV_SLURM_OPTION) != NULL) {
        /* libhvd reads this variable, which the tasks inherit from `#SBATCH --hvd`. */
        setenv(HVD_ENV_SLURM_OPTION, "off", 1);
        hvd_spank_srun_environment_remove_front_end(plugin->plugstack.python_dir);
    }
    plugin->srun.is_interactive = hvd_spank_srun_command_is_interactive();
    if (plugin->options.is_on && !plugin->srun.is_interactive) {
        hvd_spank_srun_options_find(&plugin->srun.options);
        set_defaults(plugin);
    }
}

/* Refuses a heterogeneous step in which only some components have --hvd: Slurm passes the
 * same text of the option to the tasks of all components. */
static int check_components(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun *srun = &plugin->srun;

    if (srun->components == 1) {
        srun->is_first_on = plugin->options.is_on;
    }
    if (srun->is_first_on == plugin->options.is_on) {
        return 0;
    }
    return hvd_fail(&plugin->refusal, HVD_ERR_ARG,
                    "--hvd holds for all components of a heterogeneous step: write it "
                    "before the first ':' only");
}

void hvd_spank_srun_init_post_opt(struct hvd_spank_plugin *plugin)
{
    int status;

    if (plugin->srun.is_interactive) {
        return;
    }
    plugin->srun.components++;
    status = check_components(plugin);
    if (status == 0 && !plugin->options.is_on) {
        return;
    }
    if (status != 0 || hvd_spank_srun_tasks_settle(plugin) != 0 ||
        hvd_spank_srun_rendezvous_check(plugin) != 0) {
        slurm_error("hvd: %s", plugin->refusal.text);
        exit(EXIT_FAILURE);
    }
    if (!plugin->srun.has_key) { /* all components of a heterogeneous step use one key */
        plugin->srun.has_key = true;
        hvd_spank_srun_environment_set_key();
    }
    hvd_spank_srun_rendezvous_prepare(plugin);
}

int hvd_spank_srun_local_user_init(struct hvd_spank_plugin *plugin,
                                   struct spank_handle *spank)
{
    uint32_t tasks = 0;
    uint32_t nodes = 0;

    if (!plugin->options.is_on || plugin->srun.is_interactive) {
        return 0;
    }
    plugin->srun.was_launched = true;
    if (spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS) {
        return 0;
    }
    if (hvd_spank_srun_tasks_check(plugin, (int)tasks, (int)nodes) != 0 ||
        hvd_spank_srun_rendezvous_start(plugin, (int)tasks) != 0) {
        setenv(HVD_ENV_LAUNCH_ERROR, plugin->refusal.text, 1);
        slurm_error("hvd: %s", plugin->refusal.text);
        return plugin->refusal.status;
    }
    if (hvd_spank_srun_tasks_are_open(plugin)) {
        setenv(HVD_ENV_REQUEST, HVD_REQUEST_TASKS_OPEN, 1);
    }
    hvd_spank_srun_environment_add_front_end(plugin->plugstack.python_dir);
    return 0;
}

void hvd_spank_srun_exit(struct hvd_spank_plugin *plugin)
{
    hvd_spank_srun_rendezvous_stop(plugin);
    if (plugin->options.is_on && !plugin->srun.was_launched &&
        plugin->srun.requested_tasks > 0 && plugin->refusal.status == 0) {
        slurm_info("hvd: --hvd requested %d task%s per node%s; to choose the number "
                   "yourself, use --ntasks-per-node=N or --hvd=tasks=keep",
                   plugin->srun.requested_tasks,
                   hvd_number_plural(plugin->srun.requested_tasks),
                   plugin->srun.has_agents ? "" : ", one for each GPU");
    }
}
