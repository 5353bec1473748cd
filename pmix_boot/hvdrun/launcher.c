/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the launcher: srun inside an allocation, mpirun for other hosts, else hvdrun
 * itself. */
#include "pmix_boot/hvdrun/launcher.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/hvdrun/hosts.h"
#include "pmix_boot/launch_env.h"

static int check_slots(const struct hvdrun_options *options,
                       const struct hvdrun_host *hosts, int count, struct hvd_error *err)
{
    int slots = 0;

    for (int i = 0; i < count; i++) {
        slots += hosts[i].slots;
    }
    if (options->ranks > slots) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "-np %d: the hosts %s have only %d slots; give more with HOST:N",
                        options->ranks, options->hosts, slots);
    }
    return 0;
}

/* Returns 1 if one of the hosts is another machine, 0 if none is, or a negative
 * status. */
static int has_remote(const struct hvdrun_options *options, const char *own,
                      struct hvd_error *err)
{
    struct hvdrun_host *hosts;
    int count = hvdrun_hosts_parse(options->hosts, &hosts, err);
    int result;

    if (count < 0) {
        return count;
    }
    result = check_slots(options, hosts, count, err);
    for (int i = 0; i < count && result == 0; i++) {
        result = hvdrun_host_is_local(hosts[i].name, own) ? 0 : 1;
    }
    free(hosts);
    return result;
}

int hvdrun_launcher_choose(const struct hvdrun_options *options,
                           const char *const *environment, const char *own,
                           enum hvdrun_launcher *launcher, struct hvd_error *err)
{
    int is_remote = options->hosts != NULL ? has_remote(options, own, err) : 0;

    if (is_remote < 0) {
        return is_remote;
    }
    if (hvd_launch_is_slurm_shell(environment)) {
        *launcher = HVDRUN_LAUNCHER_SRUN;
        return 0;
    }
    if (options->ranks == 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the number of ranks is missing: hvdrun -np N %s",
                        options->command[0]);
    }
    if (is_remote && hvdrun_options_is_elastic(options)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "mpirun ends all ranks when one fails; use srun --hvd=elastic "
                        "for elastic jobs on other hosts (%s)",
                        options->hosts);
    }
    *launcher = is_remote ? HVDRUN_LAUNCHER_MPIRUN : HVDRUN_LAUNCHER_LOCAL;
    return 0;
}

/* --- replacing hvdrun by srun or mpirun --------------------------------------------- */

bool hvdrun_find_in_path(const char *name, char *path, size_t bytes)
{
    const char *directories = getenv(HVD_ENV_PATH);

    while (directories != NULL && *directories != '\0') {
        size_t length = strcspn(directories, ":");

        snprintf(path, bytes, "%.*s/%s", (int)length, directories, name);
        if (length > 0 && access(path, X_OK) == 0) {
            return true;
        }
        directories += length + (directories[length] == ':' ? 1 : 0);
    }
    return false;
}

static int export_settings(const struct hvdrun_options *options, struct hvd_error *err)
{
    for (int i = 0; i < options->settings.count; i++) {
        /* putenv keeps the pointer; the item lives as long as this process. */
        if (putenv(options->settings.items[i]) != 0) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the environment");
        }
    }
    return 0;
}

/* srun writes files only into directories that exist. */
static void make_directories(const struct hvdrun_options *options)
{
    char path[PATH_MAX];

    (void)mkdir(options->output_directory, 0777);
    for (int rank = 0; rank < options->ranks; rank++) {
        snprintf(path, sizeof(path), "%s/rank.%d", options->output_directory, rank);
        (void)mkdir(path, 0777);
    }
}

static int find_mpirun(const struct hvdrun_options *options, char *path, size_t bytes,
                       struct hvd_error *err)
{
    if (hvdrun_find_in_path("prterun", path, bytes) ||
        hvdrun_find_in_path("mpirun", path, bytes)) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "ranks on other hosts (%s) need Open MPI's mpirun or prterun, and "
                    "neither is in PATH: install one, or use Slurm",
                    options->hosts);
}

static void tell_words(const struct hvdrun_string_list *words)
{
    char line[1024] = "";
    size_t used = 0;

    for (int i = 0; i < words->count && used < sizeof(line); i++) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
                                 i > 0 ? " " : "", words->items[i]);
    }
    hvd_log(HVD_LOG_INFO, "running: %s", line);
}

/* Removes the address of an outer launch's rendezvous service: the ranks would join that
 * job. */
static void forget_outer_service(void)
{
    unsetenv(HVD_ENV_RENDEZVOUS);
    unsetenv(HVD_ENV_RENDEZVOUS_STEP);
    unsetenv(HVD_ENV_HOROVOD_ELASTIC);
}

int hvdrun_launcher_exec(const struct hvdrun_options *options,
                         enum hvdrun_launcher launcher, struct hvd_error *err)
{
    struct hvdrun_string_list words = {0};
    char path[PATH_MAX];
    int status;

    forget_outer_service();
    status = export_settings(options, err);
    if (status == 0 && launcher == HVDRUN_LAUNCHER_SRUN) {
        if (options->output_directory != NULL) {
            make_directories(options);
        }
        status = hvdrun_launcher_srun(options, &words, err);
    } else if (status == 0) {
        status = find_mpirun(options, path, sizeof(path), err);
        if (status == 0) {
            status = hvdrun_launcher_mpirun(options, (const char *const *)environ, path,
                                            &words, err);
        }
    }
    if (status == 0) {
        tell_words(&words);
        execvp(words.items[0], words.items);
        status = hvd_fail(err, HVD_ERR_SYS, "cannot run %s: %m", words.items[0]);
    }
    hvdrun_string_list_finish(&words);
    return status;
}
