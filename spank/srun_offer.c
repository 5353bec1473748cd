/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd asks of srun when the user did not ask for something else. */
#include "spank/srun_offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "spank/job.h"
#include "spank/nested.h"

void hvd_srun_withdraw(struct hvd_launch *launch)
{
    struct hvd_srun *srun = &launch->srun;

    hvd_settings_withdraw(&srun->settings);
    hvd_srun_env_withdraw(&srun->env);
    srun->asked_tasks = 0;
}

/* All ranks live or none. */
static void offer_common_fate(struct hvd_launch *launch)
{
    struct hvd_settings *settings = &launch->srun.settings;

    if (!launch->admin.keep_mpi && hvd_settings_know_pmix(settings)) {
        hvd_nested_forget_mpi(settings);
        hvd_settings_offer(settings, HVD_SETTING_MPI, "pmix");
    }
    hvd_settings_offer(settings, HVD_SETTING_KILL, "1");
}

/* Slurm ends the others neither for a task that failed, nor for a node, nor after a while. PMIx
 * would, for a rank that died while it spoke to it; elastic ranks do without. */
static void offer_own_fates(struct hvd_launch *launch)
{
    struct hvd_settings *settings = &launch->srun.settings;

    hvd_nested_forget_mpi(settings);
    hvd_settings_offer(settings, HVD_SETTING_MPI, "none");
    hvd_settings_offer(settings, HVD_SETTING_KILL, "0");
    hvd_settings_offer(settings, HVD_SETTING_NO_KILL, "set");
    hvd_settings_offer(settings, HVD_SETTING_WAIT, "0");
}

/* From 23.11 on sbatch and salloc bind the GPUs of --gpus-per-task by themselves, in the words of
 * a user who typed that, too; before, nothing told steps of it. */
static bool has_asked_for_binding(const struct hvd_settings *settings)
{
    static const char of_slurm[] = "gres/gpu:per_task:";
    const char *inherited = getenv(HVD_ENV_SLURM_JOB_TRES_BIND);
    char used[256];

    hvd_settings_get(settings, "tres-bind", used, sizeof(used));
    return used[0] != '\0' && (inherited == NULL || strcmp(used, inherited) != 0 ||
                               strncmp(used, of_slurm, strlen(of_slurm)) != 0);
}

void hvd_srun_offer(struct hvd_launch *launch)
{
    struct hvd_settings *settings = &launch->srun.settings;
    const char *cpus = hvd_job_cpus_per_task();
    char timeout[16];

    hvd_nested_forget_binding(settings);
    if (launch->options.is_elastic) {
        offer_own_fates(launch);
    } else {
        offer_common_fate(launch);
    }
    if (!launch->options.keep_gpus && !has_asked_for_binding(settings)) {
        hvd_settings_offer(settings, HVD_SETTING_GPU_BIND, "none");
    }
    if (cpus != NULL) {
        hvd_settings_offer(settings, HVD_SETTING_CPUS_PER_TASK, cpus);
    }
    snprintf(timeout, sizeof(timeout), "%d", launch->admin.timeout_s);
    hvd_srun_env_offer(&launch->srun.env, HVD_SRUN_PMIX_TIMEOUT, timeout);
    hvd_srun_env_offer(&launch->srun.env, HVD_SRUN_PMIX_FENCE, "ring");
    hvd_srun_env_offer(&launch->srun.env, HVD_SRUN_REQUEST, HVD_REQUEST_TASKS_KNOWN);
}
