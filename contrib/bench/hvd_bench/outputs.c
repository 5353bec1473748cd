/* SPDX-License-Identifier: Apache-2.0 */
/* Checks directories and permissions of output files. */
#include "contrib/bench/hvd_bench/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/run/algorithm_file.h"

/* Checks the directory, because files are made and replaced there. */
static int check_directory(const char *option, const char *path, struct hvd_error *err)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];

    snprintf(directory, sizeof(directory), "%.*s",
             slash != NULL ? (int)(slash - path) + 1 : 1, slash != NULL ? path : ".");
    return access(directory, W_OK | X_OK) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "--%s: cannot write %.150s: directory %.150s: %m", option, path,
                          directory);
}

/* Checks that a file can be written. is_replaced: a new file is made beside it and
 * renamed, so the directory must be writable. */
static int check_file(const char *option, const char *path, bool is_replaced,
                      struct hvd_error *err)
{
    struct stat status;
    bool is_there = stat(path, &status) == 0;

    if (is_there && S_ISDIR(status.st_mode)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--%s: cannot write %.200s: it is a directory, expected a file",
                        option, path);
    }
    if ((is_there && access(path, W_OK) != 0) ||
        (!is_there && errno != ENOENT && errno != ENOTDIR)) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s: cannot write %.200s: %m", option, path);
    }
    return is_there && !is_replaced ? 0 : check_directory(option, path, err);
}

static int check_table(const char *path, struct hvd_error *err)
{
    struct hvd_algorithm_table *table = NULL;
    struct hvd_error inner = {0};
    int status = 0;

    if (strcmp(path, "builtin") == 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--tune builtin: the word stands for the built-in table: choose "
                        "another name, or ./builtin");
    }
    if (access(path, F_OK) == 0) {
        status = hvd_algorithm_file_read(path, &table, &inner);
        hvd_algorithm_table_destroy(table);
    }
    return status == 0 ? 0
                       : hvd_fail(err, HVD_ERR_ARG,
                                  "--tune: the file exists, but is not a table "
                                  "of algorithms: %.250s",
                                  inner.text);
}

int bench_outputs_check(const struct bench_options *options, struct hvd_error *err)
{
    const struct {
        const char *option, *name, *suffix;
    } wanted[] = {
        {"json", options->json, ""},
        {"plot", options->json == NULL ? options->plot : NULL, ".json"},
        {"plot", options->plot, ".png"},
        {"plot", options->plot, ".svg"},
        {"tune", options->tune, ""},
    };
    char paths[sizeof(wanted) / sizeof(wanted[0])][PATH_MAX] = {""};
    int status = 0;

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && status == 0; i++) {
        const char *option = wanted[i].option, *name = wanted[i].name;

        if (name == NULL) {
            continue;
        }
        if (name[0] == '\0') {
            return hvd_fail(err, HVD_ERR_ARG, "--%s \"\": expected the name of a file",
                            option);
        }
        if (snprintf(paths[i], PATH_MAX, "%s%s", name, wanted[i].suffix) >= PATH_MAX) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--%s: the name has more than %d characters", option,
                            PATH_MAX - 1);
        }
        if (i > 0 && strcmp(paths[0], paths[i]) == 0) {
            return hvd_fail(err, HVD_ERR_ARG, "--json and --%s would both write %.200s",
                            option, paths[i]);
        }
        status = check_file(option, paths[i], name == options->tune, err);
    }
    return status < 0 || options->tune == NULL ? status : check_table(options->tune, err);
}
