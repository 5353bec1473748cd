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
#include "spank/job.h"
#include "spank/nested.h"
#include "spank/srun_elastic.h"
#include "spank/srun_offer.h"
#include "spank/srun_tasks.h"

/* A word of another Slurm plugin for MPI starts like this: pmix, pmix_v4. */
static bool is_pmix(const char *mpi)
{
    return mpi != NULL && strncmp(mpi, "pmix", strlen("pmix")) == 0;
}

void hvd_srun_init(struct hvd_launch *launch)
{
    const char *inherited;
    struct hvd_options options = {0};

    if (launch->admin.is_default_on) {
        setenv(HVD_ENV_SLURM_OPTION, "on", 0);
    }
    inherited = getenv(HVD_ENV_SLURM_OPTION);
    if (inherited == NULL || hvd_settings_find(&launch->srun.settings) ||
        launch->admin.keep_mpi) {
        return;
    }
    /* Without srun's functions this is the last moment to choose PMIx, and only for an
     * option that came with the job. */
    if (hvd_options_parse(inherited, &options, NULL) == 0 && options.is_on) {
        setenv(HVD_ENV_SLURM_MPI_TYPE, "pmix", 0);
    }
}

/* The srun that salloc starts to give the user a shell on the first node, when the admin
 * wants it so. It inherits --hvd for the steps that will follow, and is none itself. */
static bool is_interactive(void)
{
    static const char word[] = "--interactive";
    char arguments[4096] = "";
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t length = file != NULL ? fread(arguments, 1, sizeof(arguments) - 1, file) : 0;
    const char *argument = arguments + strlen(arguments) + 1;

    if (file != NULL) {
        fclose(file);
    }
    while (argument < arguments + length && argument[0] == '-') {
        if (strcmp(argument, word) == 0) {
            return true;
        }
        argument += strlen(argument) + 1;
    }
    return false;
}

void hvd_srun_option(struct hvd_launch *launch)
{
    hvd_nested_forget_task();
    hvd_srun_withdraw(launch);
    hvd_srun_elastic_forget();
    if (!launch->options.is_on && getenv(HVD_ENV_SLURM_OPTION) != NULL) {
        /* The tasks inherit what #SBATCH asked for, and the library looks at it. */
        setenv(HVD_ENV_SLURM_OPTION, "off", 1);
        hvd_srun_env_remove_front_end(launch->admin.python_dir);
    }
    launch->srun.is_interactive = is_interactive();
    if (launch->options.is_on && !launch->srun.is_interactive) {
        hvd_settings_find(&launch->srun.settings);
        hvd_srun_offer(launch);
    }
}

int hvd_srun_check(struct hvd_launch *launch)
{
    const struct hvd_settings *settings = &launch->srun.settings;
    char mpi[64];

    if (!launch->options.is_on || launch->srun.is_interactive) {
        return 0;
    }
    launch->srun.components++;
    hvd_settings_get(settings, "mpi", mpi, sizeof(mpi));
    if (mpi[0] != '\0' && !is_pmix(mpi) && !launch->options.is_elastic) {
        return hvd_fail(&launch->refusal, HVD_ERR_ARG,
                        "--hvd needs Slurm's PMIx (found --mpi=%s): drop --mpi "
                        "and " HVD_ENV_SLURM_MPI_TYPE ", or use --mpi=pmix",
                        mpi);
    }
    if (hvd_srun_ask_tasks(launch) != 0) {
        return launch->refusal.status;
    }
    return hvd_srun_check_gpus(launch, hvd_settings_number(settings, "ntasks"),
                               hvd_job_step_nodes(settings));
}

static int check_pmix(struct hvd_launch *launch, unsigned tasks)
{
    const char *mpi = getenv(HVD_ENV_SLURM_MPI_TYPE);

    if (tasks <= 1 || is_pmix(mpi) || launch->options.is_elastic) {
        return 0;
    }
    if (!hvd_settings_know_pmix(&launch->srun.settings)) {
        return hvd_fail(
            &launch->refusal, HVD_ERR_UNSUPPORTED,
            "--hvd needs Slurm's PMIx, but this Slurm was installed without its "
            "plugin mpi_pmix: ask the administrator for it, or use --hvd=elastic, "
            "which needs none");
    }
    return hvd_fail(&launch->refusal, HVD_ERR_ARG,
                    "--hvd needs Slurm's PMIx (found MPI type %s): use srun --hvd "
                    "--mpi=pmix",
                    mpi != NULL ? mpi : "none");
}

int hvd_srun_launch(struct hvd_launch *launch, struct spank_handle *spank)
{
    uint32_t tasks = 0;
    uint32_t nodes = 0;

    if (!launch->options.is_on || launch->srun.is_interactive) {
        return 0;
    }
    launch->srun.was_launched = true;
    if (spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS) {
        return 0;
    }
    if (check_pmix(launch, tasks) != 0 ||
        hvd_srun_check_answer(launch, (int)tasks, (int)nodes) != 0 ||
        hvd_srun_elastic_start(launch, (int)tasks) != 0) {
        setenv(HVD_ENV_LAUNCH_ERROR, launch->refusal.text, 1);
        return launch->refusal.status;
    }
    if (hvd_srun_has_open_tasks(launch)) {
        setenv(HVD_ENV_REQUEST, HVD_REQUEST_TASKS_OPEN, 1);
    }
    hvd_srun_env_add_front_end(launch->admin.python_dir);
    return 0;
}

void hvd_srun_exit(struct hvd_launch *launch)
{
    hvd_srun_elastic_stop(launch);
    if (launch->options.is_on && !launch->srun.was_launched &&
        launch->srun.asked_tasks > 0 && launch->refusal.status == 0) {
        slurm_info("hvd: --hvd asked for %d tasks per node, one for each GPU; if that is "
                   "not what you want, use --ntasks-per-node=N or --hvd=tasks=keep",
                   launch->srun.asked_tasks);
    }
}
