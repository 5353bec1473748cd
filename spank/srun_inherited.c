/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what srun inherits from the task in which it runs. */
#include "spank/srun_inherited.h"

#include <slurm/slurm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"

static const char *const task_variables[] = {
    HVD_ENV_RANK,
    HVD_ENV_SIZE,
    HVD_ENV_LOCAL_RANK,
    HVD_ENV_LOCAL_SIZE,
    HVD_ENV_CROSS_RANK,
    HVD_ENV_CROSS_SIZE,
    HVD_ENV_HOSTNAME,
    HVD_ENV_LAUNCH,
    HVD_ENV_GPU_LIST,
    HVD_ENV_GPU_INDEX,
    HVD_ENV_GPUS,
    HVD_ENV_CPUS,
    HVD_ENV_NIC,
    HVD_ENV_REQUEST,
    HVD_ENV_LAUNCH_ERROR,
    HVD_ENV_TORCH_RANK,
    HVD_ENV_TORCH_SIZE,
    HVD_ENV_TORCH_LOCAL_RANK,
    HVD_ENV_TORCH_LOCAL_SIZE,
    HVD_ENV_TORCH_NODE,
    HVD_ENV_NODE_RANK,
    HVD_ENV_AGENT_RANKS,
    HVD_ENV_AGENT_PLAN,
    HVD_ENV_DEFAULTS,
};

/* Variables that are removed only if HVD_DEFAULTS lists them, because then hvd has set
 * them, not the user. */
static const char *const default_variables[] = {
    HVD_ENV_MASTER_ADDRESS,  HVD_ENV_MASTER_PORT,        HVD_ENV_JAX_ADDRESS,
    HVD_ENV_JAX_PORT,        HVD_ENV_OMP_THREADS,        HVD_ENV_MKL_THREADS,
    HVD_ENV_NCCL_IFNAME,     HVD_ENV_TORCH_GLOO_IFNAME,  HVD_ENV_PET_NNODES,
    HVD_ENV_PET_NODE_RANK,   HVD_ENV_PET_NPROC_PER_NODE, HVD_ENV_PET_MASTER_ADDRESS,
    HVD_ENV_PET_MASTER_PORT,
};

/* srun exports the address of its service to all nodes, even to those without the
 * plugin. The record of exported variables lists it, too. */
static const char *const service_variables[] = {
    HVD_ENV_RENDEZVOUS_STEP, HVD_ENV_RENDEZVOUS,     HVD_ENV_HOROVOD_ELASTIC,
    HVD_ENV_EXPORTED,        HVD_ENV_LAUNCH_VERSION,
};

static const char *const binding_variables[] = {
    HVD_ENV_SLURM_CPU_BIND,
    HVD_ENV_SLURM_CPU_BIND_TYPE,
    HVD_ENV_SLURM_CPU_BIND_LIST,
    HVD_ENV_SLURM_CPU_BIND_VERBOSE,
};

static void drop_variables(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsetenv(names[i]);
    }
}

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    while (*list != '\0') {
        size_t word = strcspn(list, ",");

        if (word == length && strncmp(list, name, word) == 0) {
            return true;
        }
        list += word + (list[word] == ',' ? 1 : 0);
    }
    return false;
}

static void drop_defaults(void)
{
    const char *list = getenv(HVD_ENV_DEFAULTS);
    size_t count = sizeof(default_variables) / sizeof(default_variables[0]);

    for (size_t i = 0; list != NULL && i < count; i++) {
        if (is_listed(list, default_variables[i])) {
            unsetenv(default_variables[i]);
        }
    }
}

/* Slurm itself sets this variable in a batch script, where it must stay. HVD_DEFAULTS
 * does not tell the two apart: if a task submits a job, the batch script inherits it.
 * Therefore only an srun inside a task removes the variable. */
void hvd_spank_srun_inherited_drop_layout(void)
{
    const char *list = getenv(HVD_ENV_DEFAULTS);
    const char *step = getenv(HVD_ENV_SLURM_STEP);

    if (list != NULL && step != NULL &&
        strtoul(step, NULL, 10) < SLURM_INTERACTIVE_STEP &&
        is_listed(list, HVD_ENV_SLURM_NTASKS_PER_NODE)) {
        unsetenv(HVD_ENV_SLURM_NTASKS_PER_NODE);
    }
}

void hvd_spank_srun_inherited_drop_service(void)
{
    drop_variables(service_variables,
                   sizeof(service_variables) / sizeof(service_variables[0]));
}

void hvd_spank_srun_inherited_drop_task(void)
{
    const char *planned = getenv(HVD_ENV_NIC);
    const char *used = getenv(HVD_ENV_UCX_NET_DEVICES);

    hvd_spank_srun_inherited_drop_service();
    if (getenv(HVD_ENV_LAUNCH) == NULL) {
        return;
    }
    if (planned != NULL && used != NULL && strcmp(planned, used) == 0) {
        unsetenv(HVD_ENV_UCX_NET_DEVICES);
    }
    drop_defaults();
    drop_variables(task_variables, sizeof(task_variables) / sizeof(task_variables[0]));
}

/* Resets the MPI type even if the user chose it for the outer step: that choice looks
 * like Slurm's own, and a user who gives --hvd inside a step wants PMIx. */
void hvd_spank_srun_inherited_drop_mpi(const struct hvd_spank_srun_options *srun_options)
{
    const char *inherited = getenv(HVD_ENV_SLURM_MPI_TYPE);
    char used[64];

    hvd_spank_srun_options_get(srun_options, "mpi", used, sizeof(used));
    if (getenv(HVD_ENV_SLURM_STEP) != NULL && inherited != NULL &&
        strcmp(used, inherited) == 0) {
        srun_options->reset(srun_options->options, "mpi");
        unsetenv(HVD_ENV_SLURM_MPI_TYPE);
    }
}

/* slurmstepd writes its masks as "quiet,mask_cpu:...", which users do not type. If srun's
 * option equals the variable, srun took it from there, and the user typed no other. */
void hvd_spank_srun_inherited_drop_binding(
    const struct hvd_spank_srun_options *srun_options)
{
    static const char of_slurmstepd[] = "quiet,mask_cpu:";
    const char *inherited = getenv(HVD_ENV_SLURM_CPU_BIND);
    char used[4096];

    if (getenv(HVD_ENV_SLURM_STEP) == NULL || inherited == NULL ||
        strncmp(inherited, of_slurmstepd, strlen(of_slurmstepd)) != 0) {
        return;
    }
    hvd_spank_srun_options_get(srun_options, "cpu-bind", used, sizeof(used));
    if (strncmp(used, inherited, sizeof(used) - 1) == 0) {
        srun_options->reset(srun_options->options, "cpu-bind");
        drop_variables(binding_variables,
                       sizeof(binding_variables) / sizeof(binding_variables[0]));
    }
}
