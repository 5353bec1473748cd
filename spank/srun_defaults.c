/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd asks of srun when the user did not ask for something else. */
#include "spank/srun_defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "spank/plugin.h"
#include "spank/slurm_numbers.h"
#include "spank/srun_inherited.h"

void hvd_spank_srun_defaults_reset(struct hvd_spank_plugin *plugin)
{
    struct hvd_spank_srun *srun = &plugin->srun;

    hvd_spank_srun_options_reset(&srun->options);
    hvd_spank_srun_environment_reset(&srun->environment);
}

/* A rank that fails ends the step: the others would wait for it. */
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

/* A task or node that fails, or a task that ends early, does not end the step. There is no PMIx:
 * it ends the step when a rank dies while it uses PMIx. */
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

/* From 23.11 on, --gpus-per-task of sbatch and salloc makes Slurm itself bind GPUs to tasks, in
 * the same words that a user would type; earlier releases do not tell steps of it. */
static bool has_asked_for_binding(const struct hvd_spank_srun_options *srun_options)
{
    static const char of_slurm[] = "gres/gpu:per_task:";
    const char *inherited = getenv(HVD_ENV_SLURM_JOB_TRES_BIND);
    char used[256];

    hvd_spank_srun_options_get(srun_options, "tres-bind", used, sizeof(used));
    return used[0] != '\0' && (inherited == NULL || strcmp(used, inherited) != 0 ||
                               strncmp(used, of_slurm, strlen(of_slurm)) != 0);
}

void hvd_spank_srun_defaults_set(struct hvd_spank_plugin *plugin)
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
