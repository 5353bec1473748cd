/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the inherited environment, removes the variables of an outer launch, and adds
 * those of this launch. */
#include "pmix_boot/hvdrun/rank_environment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/apply.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/nccl_files.h"

/* Variables of an outer launch. They would lead a rank to the outer launch's server or
 * file, or tell it that the launch failed or that there is a terminal. */
static const char *const outer[] = {"PMIX_",
                                    HVD_ENV_LAUNCH_ERROR "=",
                                    HVD_ENV_RENDEZVOUS "=",
                                    HVD_ENV_HOROVOD_ELASTIC "=",
                                    HVD_ENV_TERMINAL "=",
                                    HVD_ENV_CAUSE "="};

static int set_number(struct hvdrun_string_list *out, const char *name, int value,
                      struct hvd_error *err)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    return hvdrun_string_list_set_variable(out, name, text, true, err);
}

/* Sets the rank's numbers in this launch, over those of an outer launch. */
static int set_ranks(const struct hvdrun_rank_environment *all, int rank,
                     struct hvdrun_string_list *out, struct hvd_error *err)
{
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {HVD_ENV_RANK, rank},
        {HVD_ENV_SIZE, all->ranks},
        {HVD_ENV_LOCAL_RANK, rank},
        {HVD_ENV_LOCAL_SIZE, all->ranks},
        {HVD_ENV_CROSS_RANK, 0},
        {HVD_ENV_CROSS_SIZE, 1},
        {HVD_ENV_TORCH_RANK, rank},
        {HVD_ENV_TORCH_SIZE, all->ranks},
        {HVD_ENV_TORCH_LOCAL_RANK, rank},
        {HVD_ENV_TORCH_LOCAL_SIZE, all->ranks},
        {HVD_ENV_TORCH_NODE, 0},
        {HVD_ENV_NODE_RANK, 0},
        {HVD_ENV_LAUNCH, 1},
    };
    int status = 0;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status == 0; i++) {
        status = set_number(out, numbers[i].name, numbers[i].value, err);
    }
    if (status == 0) {
        status =
            hvdrun_string_list_set_variable(out, HVD_ENV_HOSTNAME, all->host, false, err);
    }
    if (status == 0) {
        status = hvdrun_string_list_set_variable(out, HVD_ENV_LAUNCH_VERSION, HVD_VERSION,
                                                 true, err);
    }
    return status;
}

/* Sets the address at which rank 0 serves the store of torch.distributed. It replaces the
 * address of an outer launch, but not the user's own. */
static int set_master(const struct hvdrun_rank_environment *all, bool is_nested,
                      struct hvdrun_string_list *out, struct hvd_error *err)
{
    char port[16];
    int status;

    if (all->master_port == 0) {
        return 0;
    }
    snprintf(port, sizeof(port), "%d", all->master_port);
    status = hvdrun_string_list_set_variable(out, HVD_ENV_MASTER_ADDRESS, "127.0.0.1",
                                             is_nested, err);
    return status < 0 ? status
                      : hvdrun_string_list_set_variable(out, HVD_ENV_MASTER_PORT, port,
                                                        is_nested, err);
}

/* Sets the numbers of threads. A number of an outer launch is only an upper limit,
 * because this launch may have fewer cores per rank. If the user set only
 * OMP_NUM_THREADS, MKL's number stays unset: MKL then follows OMP_NUM_THREADS. */
static int set_threads(const struct hvdrun_rank_environment *all, int rank,
                       bool is_nested, struct hvdrun_string_list *out,
                       struct hvd_error *err)
{
    static const char *const names[] = {HVD_ENV_OMP_THREADS, HVD_ENV_MKL_THREADS};
    bool has_own = hvdrun_string_list_get_variable(out, HVD_ENV_OMP_THREADS) != NULL;
    int status = 0;

    for (int i = 0; i < 2 && all->plan != NULL && status == 0; i++) {
        int threads = hvd_plan_thread_count(all->plan, rank);
        const char *found = hvdrun_string_list_get_variable(out, names[i]);

        if (found == NULL ? !has_own : is_nested && atoi(found) > threads) {
            status = set_number(out, names[i], threads, err);
        }
    }
    return status;
}

/* Adds our directory at the end of PYTHONPATH, so that the user's own packages come
 * first. */
static int set_python(const struct hvdrun_rank_environment *all,
                      struct hvdrun_string_list *out, struct hvd_error *err)
{
    const char *path = hvdrun_string_list_get_variable(out, HVD_ENV_PYTHONPATH);
    char joined[8192];
    int status =
        hvdrun_string_list_set_variable(out, HVD_ENV_PYTHON_UNBUFFERED, "1", false, err);

    if (status < 0 || all->python_directory == NULL) {
        return status;
    }
    if (path == NULL || path[0] == '\0') {
        return hvdrun_string_list_set_variable(out, HVD_ENV_PYTHONPATH,
                                               all->python_directory, true, err);
    }
    if ((size_t)snprintf(joined, sizeof(joined), "%s:%s", path, all->python_directory) >=
        sizeof(joined)) {
        return hvd_fail(err, HVD_ERR_ARG, "%s is longer than %zu bytes",
                        HVD_ENV_PYTHONPATH, sizeof(joined));
    }
    return hvdrun_string_list_set_variable(out, HVD_ENV_PYTHONPATH, joined, true, err);
}

static int set_service(const struct hvdrun_rank_environment *all,
                       struct hvdrun_string_list *out, struct hvd_error *err)
{
    char address[256];
    int status;

    if (all->service == NULL) {
        return 0;
    }
    snprintf(address, sizeof(address), "%s:%s", all->service_host, all->service);
    status = hvdrun_string_list_set_variable(out, HVD_ENV_RENDEZVOUS, address, true, err);
    return status < 0 || !all->is_elastic
               ? status
               : hvdrun_string_list_set_variable(out, HVD_ENV_HOROVOD_ELASTIC, "1", true,
                                                 err);
}

static int set_one(void *context, const char *name, const char *value, bool overwrite)
{
    return hvdrun_string_list_set_variable(context, name, value, overwrite, NULL);
}

static int set_binding(const struct hvdrun_rank_environment *all, int rank,
                       struct hvdrun_string_list *out, struct hvd_error *err)
{
    struct hvd_cpuset bound;
    int status = 0;

    if (all->plan == NULL) {
        return 0;
    }
    if (all->plan->mode == HVD_BIND_NONE) {
        status = hvd_affinity_get(&bound, err);
    } else {
        bound = hvd_plan_row_of(all->plan, rank)->cpus;
    }
    if (status == 0) {
        status = hvd_apply_env(all->plan, rank, &bound, set_one, out, err);
    }
    return status < 0
               ? status
               : hvdrun_string_list_set_variable(out, HVD_ENV_GPUS, "all", true, err);
}

static bool get_one(void *context, const char *name, char *value, size_t bytes)
{
    const char *found = hvdrun_string_list_get_variable(context, name);

    snprintf(value, bytes, "%s", found != NULL ? found : "");
    return found != NULL;
}

static int replace_one(void *context, const char *name, const char *value)
{
    return hvdrun_string_list_set_variable(context, name, value, true, NULL);
}

static int set_nccl_files(int rank, struct hvdrun_string_list *out, struct hvd_error *err)
{
    const struct hvd_nccl_environment environment = {
        .get = get_one, .set = replace_one, .context = out};

    return hvd_nccl_files_set(&environment, rank, err);
}

static int set_settings(const struct hvdrun_string_list *settings,
                        struct hvdrun_string_list *out, struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < settings->count && status == 0; i++) {
        char name[128];
        size_t length = strcspn(settings->items[i], "=");

        snprintf(name, sizeof(name), "%.*s", (int)length, settings->items[i]);
        status = hvdrun_string_list_set_variable(
            out, name, settings->items[i] + length + 1, true, err);
    }
    return status;
}

int hvdrun_rank_environment_make(const struct hvdrun_rank_environment *all, int rank,
                                 struct hvdrun_string_list *out, struct hvd_error *err)
{
    int status = hvdrun_string_list_add_all(out, all->inherited, err);
    bool is_nested = hvdrun_string_list_get_variable(out, HVD_ENV_LAUNCH) != NULL;

    for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]) && status == 0; i++) {
        hvdrun_string_list_remove_variables(out, outer[i]);
    }
    if (status == 0) {
        status = set_settings(all->settings, out, err);
    }
    if (status == 0) {
        status = set_nccl_files(rank, out, err);
    }
    if (status == 0) {
        status = set_ranks(all, rank, out, err);
    }
    if (status == 0) {
        status = set_master(all, is_nested, out, err);
    }
    if (status == 0) {
        status = set_threads(all, rank, is_nested, out, err);
    }
    if (status == 0) {
        status = set_python(all, out, err);
    }
    if (status == 0 && all->has_terminal) {
        status = hvdrun_string_list_set_variable(out, HVD_ENV_TERMINAL, "1", true, err);
    }
    if (status == 0) {
        status = set_service(all, out, err);
    }
    if (status == 0 && all->cause != NULL) {
        status =
            hvdrun_string_list_set_variable(out, HVD_ENV_CAUSE, all->cause, true, err);
    }
    return status < 0 ? status : set_binding(all, rank, out, err);
}

/* --- the front end: beside an installed hvdrun, or else in HVD_PYTHON_DIR --- */

static bool has_package(const char *directory)
{
    char package[PATH_MAX];
    int length = snprintf(package, sizeof(package), "%s/horovod/__init__.py", directory);

    return length > 0 && (size_t)length < sizeof(package) && access(package, R_OK) == 0;
}

void hvdrun_python_directory(char *path, size_t bytes)
{
    char own[PATH_MAX];
    char *slash;

    if (realpath("/proc/self/exe", own) != NULL) {
        slash = strrchr(own, '/');
        *slash = '\0';
        snprintf(path, bytes, "%s/../lib/hvd/python", own);
        if (has_package(path)) {
            return;
        }
    }
    snprintf(path, bytes, "%s", HVD_PYTHON_DIR);
    if (!has_package(path)) {
        path[0] = '\0';
    }
}
