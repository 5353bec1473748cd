/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the environment of a task. */
#include "spank/task_environment.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/nccl_files.h"
#include "spank/plugin.h"
#include "spank/python.h"
#include "spank/task_agent.h"
#include "spank/task_init.h"
#include "spank/task_master.h"
#include "spank/task_torch.h"
#include "spank/task_variables.h"

/* A longer PYTHONPATH is left alone. */
enum {
    PATH_TEXT_MAX = 65536
};

void hvd_spank_task_show_gpus(const struct hvd_spank_task *task)
{
    const struct hvd_spank_job_step *step = &task->plugin->step;

    if (task->has_gpus && !task->is_isolated && !task->plugin->options.keep_gpus &&
        step->visible[0] != '\0') {
        hvd_spank_task_setenv(task->spank, HVD_ENV_CUDA_VISIBLE_DEVICES, step->visible,
                              true);
    }
}

/* Finds the cross rank and size. With --distribution=arbitrary they are unknown: the
 * order of nodes need not follow the ranks. */
static bool find_cross(const struct hvd_spank_task *task, int *rank, int *size)
{
    char distribution[64] = "";
    char counts[4096];

    spank_getenv(task->spank, HVD_ENV_SLURM_DISTRIBUTION, distribution,
                 sizeof(distribution));
    return strncmp(distribution, "arbitrary", strlen("arbitrary")) != 0 &&
           spank_getenv(task->spank, HVD_ENV_SLURM_STEP_TASKS_PER_NODE, counts,
                        sizeof(counts)) == ESPANK_SUCCESS &&
           hvd_spank_placement_cross(&task->placement, counts, rank, size);
}

/* Exports the numbers of the rank; an agent gets none, because the ranks that it starts
 * would inherit them. */
static void export_ranks(const struct hvd_spank_task *task)
{
    char host[65] = "";
    int cross_rank;
    int cross_size;

    gethostname(host, sizeof(host) - 1);
    hvd_spank_task_setenv(task->spank, HVD_ENV_HOSTNAME, host, false);
    if (task->is_agent) {
        return;
    }
    hvd_spank_task_export_number(task, HVD_ENV_RANK, task->rank);
    hvd_spank_task_export_number(task, HVD_ENV_SIZE, task->placement.tasks);
    hvd_spank_task_export_number(task, HVD_ENV_LOCAL_RANK, task->placement.local_rank);
    hvd_spank_task_export_number(task, HVD_ENV_LOCAL_SIZE, task->placement.local_size);
    if (find_cross(task, &cross_rank, &cross_size)) {
        hvd_spank_task_export_number(task, HVD_ENV_CROSS_RANK, cross_rank);
        hvd_spank_task_export_number(task, HVD_ENV_CROSS_SIZE, cross_size);
    }
}

/* Tells the user which of two packages named horovod Python imports. */
static void warn_of_other_package(const struct hvd_spank_task *task, const char *path)
{
    const char *dir = task->plugin->plugstack.python_dir;
    char root[4096] = "";
    char other[4096];
    bool wins;

    if (spank_getenv(task->spank, HVD_ENV_VIRTUAL_ENV, root, sizeof(root)) !=
        ESPANK_SUCCESS) {
        spank_getenv(task->spank, HVD_ENV_CONDA_PREFIX, root, sizeof(root));
    }
    if (!hvd_spank_python_find_other(path, dir, root, other, sizeof(other), &wins)) {
        return;
    }
    if (wins) {
        fprintf(stderr,
                "hvd: Python imports the package horovod in %s, which is on "
                "PYTHONPATH, not hvd's: remove it from PYTHONPATH, or do not use --hvd\n",
                other);
    } else {
        fprintf(stderr, "hvd: Python imports hvd's package horovod, not the one in %s\n",
                other);
    }
}

void hvd_spank_task_export_front_end(const struct hvd_spank_task *task)
{
    const char *dir = task->plugin->plugstack.python_dir;
    char *path = malloc((size_t)2 * PATH_TEXT_MAX);
    char *joined = path != NULL ? path + PATH_TEXT_MAX : NULL;
    spank_err_t rc = ESPANK_ERROR;

    if (path != NULL && dir[0] != '\0') {
        path[0] = '\0';
        rc = spank_getenv(task->spank, HVD_ENV_PYTHONPATH, path, PATH_TEXT_MAX);
    }
    if ((rc == ESPANK_SUCCESS || rc == ESPANK_ENV_NOEXIST) &&
        hvd_spank_python_path(path, dir, joined, PATH_TEXT_MAX)) {
        spank_setenv(task->spank, HVD_ENV_PYTHONPATH, joined, true);
        if (task->rank == 0 && !task->plugin->step.is_shell) {
            warn_of_other_package(task, joined);
        }
    }
    free(path);
}

static void warn_of_isolation(const struct hvd_spank_task *task)
{
    if (task->rank == 0 && task->placement.tasks > 1 &&
        !task->plugin->options.keep_gpus) {
        fprintf(stderr,
                "hvd: --gpu-bind hides the ranks' GPUs from each other, so that they "
                "cannot copy directly: use --gpus-per-node without --gpu-bind\n");
    }
}

/* Exports the words of --hvd that ranks read. A word has precedence over the variable of
 * the same meaning. With verbose, one rank per node logs how ranks reach each other. */
static void export_words(const struct hvd_spank_task *task)
{
    const struct hvd_spank_options *options = &task->plugin->options;
    char step[HVD_SPANK_STEP_BYTES];

    if (options->report[0] != '\0') {
        hvd_spank_task_setenv(task->spank, HVD_ENV_REPORT, options->report, true);
    }
    if (options->timeline[0] != '\0') {
        hvd_spank_task_setenv(task->spank, HVD_ENV_TIMELINE, options->timeline, true);
    }
    if (options->metrics[0] != '\0') {
        hvd_spank_task_setenv(task->spank, HVD_ENV_METRICS, options->metrics, true);
    }
    if (options->has_all_ranks) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_TIMELINE_RANKS, "all", true);
    }
    if (options->has_requeue && hvd_spank_task_step_name(task, step)) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_REQUEUE, step, true);
    }
    if (options->is_verbose && task->placement.local_rank == 0) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_LOG_LEVEL, "info", false);
    }
}

/* Appends the value of the variable, an address of srun, unless it is already in the
 * list. */
static void add_host(const struct hvd_spank_task *task, const char *variable, char *hosts,
                     size_t bytes)
{
    char host[128] = "";
    const size_t used = strlen(hosts);

    if (spank_getenv(task->spank, variable, host, sizeof(host)) == ESPANK_SUCCESS &&
        host[0] != '\0' && strcmp(host, hosts) != 0) {
        snprintf(hosts + used, bytes - used, "%s%s", used > 0 ? "," : "", host);
    }
}

/* Writes the address of the step's service; returns false if there is none. If srun
 * started the service itself, the address has no host. srun's own host is then added: up
 * to two addresses, because perhaps only one of them can be reached from this node. */
static bool find_service(const struct hvd_spank_task *task, char *address, size_t bytes)
{
    char hosts[257] = "";
    char service[256] = "";
    const char *colon;

    if (spank_getenv(task->spank, HVD_ENV_RENDEZVOUS_STEP, service, sizeof(service)) !=
        ESPANK_SUCCESS) {
        return false;
    }
    colon = strchr(service, ':');
    if (colon != NULL && strchr(colon + 1, ':') != NULL) {
        snprintf(address, bytes, "%s", service);
        return true;
    }
    add_host(task, HVD_ENV_SLURM_SRUN_HOST, hosts, sizeof(hosts));
    add_host(task, HVD_ENV_SLURM_LAUNCH_NODE, hosts, sizeof(hosts));
    snprintf(address, bytes, "%s:%s", hosts, service);
    return true;
}

static void export_service(const struct hvd_spank_task *task)
{
    char address[600];

    if (!find_service(task, address, sizeof(address))) {
        return;
    }
    hvd_spank_task_setenv(task->spank, HVD_ENV_RENDEZVOUS, address, true);
    if (task->plugin->options.is_elastic) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_HOROVOD_ELASTIC, "1", true);
    }
}

static bool get_variable(void *spank, const char *name, char *value, size_t bytes)
{
    const spank_err_t rc = spank_getenv(spank, name, value, (int)bytes);

    return rc == ESPANK_SUCCESS || rc == ESPANK_NOSPACE;
}

static int set_variable(void *spank, const char *name, const char *value)
{
    return hvd_spank_task_setenv(spank, name, value, true);
}

int hvd_spank_task_export_nccl(const struct hvd_spank_task *task, struct hvd_error *err)
{
    const char *directory = task->plugin->options.nccl;
    const struct hvd_nccl_environment environment = {
        .get = get_variable, .set = set_variable, .context = task->spank};

    if (directory[0] != '\0') {
        hvd_spank_task_setenv(task->spank, HVD_ENV_NCCL_FILES, directory, true);
    }
    return hvd_nccl_files_set(&environment,
                              task->is_agent ? HVD_NCCL_RANK_UNKNOWN : task->rank, err);
}

void hvd_spank_task_export(const struct hvd_spank_task *task)
{
    export_ranks(task);
    hvd_spank_task_export_torch(task);
    export_words(task);
    export_service(task);
    hvd_spank_task_export_master(task);
    if (task->is_agent) {
        hvd_spank_task_agent_export_master(task);
    }
    hvd_spank_task_export_front_end(task);
    if (task->plugin->plugstack.python_dir[0] != '\0') {
        hvd_spank_task_record(task->spank, HVD_ENV_PYTHONPATH,
                              task->plugin->plugstack.python_dir);
    }
    if (task->is_isolated) {
        /* Slurm does not tell which of the node's GPUs this task has. */
        hvd_spank_task_unsetenv(task->spank, HVD_ENV_GPU_LIST);
        warn_of_isolation(task);
    }
    if (task->has_gpus) {
        hvd_spank_task_setenv(task->spank, HVD_ENV_GPUS,
                              task->is_isolated ? "isolated" : "all", true);
    }
    hvd_spank_task_setenv(task->spank, HVD_ENV_LAUNCH_VERSION, HVD_VERSION, true);
    hvd_spank_task_setenv(task->spank, HVD_ENV_LAUNCH, "1", true);
}
