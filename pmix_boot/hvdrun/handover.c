/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the other launcher, gives it the settings as environment, and becomes it. */
#include "pmix_boot/hvdrun/handover.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

static bool find_in_path(const char *name, char *path, size_t bytes)
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
        /* putenv keeps the word, which lives as long as this process. */
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
    if (find_in_path("prterun", path, bytes) || find_in_path("mpirun", path, bytes)) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "ranks on other hosts (%s) are started by Open MPI's mpirun or by "
                    "prterun, and neither is in PATH: install one, or use Slurm",
                    options->hosts);
}

static void tell(const struct hvdrun_words *words)
{
    char line[1024] = "";
    size_t used = 0;

    for (int i = 0; i < words->count && used < sizeof(line); i++) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
                                 i > 0 ? " " : "", words->items[i]);
    }
    hvd_log(HVD_LOG_INFO, "handing over to: %s", line);
}

int hvdrun_handover(const struct hvdrun_options *options, enum hvdrun_way way,
                    struct hvd_error *err)
{
    struct hvdrun_words words = {0};
    char path[PATH_MAX];
    int status = export_settings(options, err);

    if (status == 0 && way == HVDRUN_WAY_SRUN) {
        if (options->output_directory != NULL) {
            make_directories(options);
        }
        status = hvdrun_way_srun(options, &words, err);
    } else if (status == 0) {
        status = find_mpirun(options, path, sizeof(path), err);
        if (status == 0) {
            status = hvdrun_way_mpirun(options, (const char *const *)environ, path,
                                       &words, err);
        }
    }
    if (status == 0) {
        tell(&words);
        execvp(words.items[0], words.items);
        status = hvd_fail(err, HVD_ERR_SYS, "cannot run %s: %m", words.items[0]);
    }
    hvdrun_words_finish(&words);
    return status;
}
