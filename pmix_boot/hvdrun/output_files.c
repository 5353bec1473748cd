/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for directories and permissions. */
#include "pmix_boot/hvdrun/output_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmix_boot/hvdrun/option_table.h"

static int fail(const char *option, const char *path, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_ARG, "--%s: cannot write %.200s: %m", option, path);
}

static void write_parent(const char *path, char parent[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    snprintf(parent, PATH_MAX, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
}

static int check_file(const char *option, const char *path, struct hvd_error *err)
{
    char parent[PATH_MAX];
    struct stat status;

    if (stat(path, &status) == 0) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : 0;
        return errno == 0 && access(path, W_OK) == 0 ? 0 : fail(option, path, err);
    }
    write_parent(path, parent);
    return errno == ENOENT && access(parent, W_OK | X_OK) == 0 ? 0
                                                               : fail(option, path, err);
}

/* Its parent must be there. */
static int check_directory(const char *option, const char *path, struct hvd_error *err)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        return check_file(option, path, err);
    }
    errno = ENOTDIR;
    return S_ISDIR(status.st_mode) && access(path, W_OK | X_OK) == 0
               ? 0
               : fail(option, path, err);
}

/* Words that are no files: "1" of a report, and Horovod's DYNAMIC of a timeline. */
static bool is_file(const char *value)
{
    return strcmp(value, "0") != 0 && strcmp(value, "1") != 0 &&
           strcmp(value, "DYNAMIC") != 0;
}

int hvdrun_output_files_check(const struct hvdrun_options *options, struct hvd_error *err)
{
    int status = 0;

    if (options->output_directory != NULL) {
        status = check_directory("output-filename", options->output_directory, err);
    }
    for (const struct hvdrun_option *option = hvdrun_option_table;
         option->name != NULL && status == 0; option++) {
        const char *value =
            option->kind == HVDRUN_OPTION_FILE
                ? hvdrun_environment_get(&options->settings, option->variable)
                : NULL;

        if (value != NULL && is_file(value)) {
            status = check_file(option->name, value, err);
        }
    }
    return status;
}
