/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for directories and permissions. */
#include "contrib/bench/hvd_bench/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/run/algorithm_file.h"

enum {
    MOST_OUTPUTS = 4
};

/* A file that a run writes. */
struct output {
    const char *option;
    char path[PATH_MAX];
    bool is_replaced; /* by a new one, made beside it */
};

struct outputs {
    int count;
    struct output items[MOST_OUTPUTS];
};

static int add(struct outputs *outputs, const char *option, const char *name,
               const char *suffix, struct hvd_error *err)
{
    struct output *output = &outputs->items[outputs->count];
    int length = snprintf(output->path, PATH_MAX, "%s%s", name, suffix);

    if (name[0] == '\0') {
        return hvd_fail(err, HVD_ERR_ARG, "--%s \"\": expected the name of a file",
                        option);
    }
    if (length < 0 || length >= PATH_MAX) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s: the name has more than %d characters",
                        option, PATH_MAX - 1);
    }
    output->option = option;
    for (int i = 0; i < outputs->count; i++) {
        if (strcmp(outputs->items[i].path, output->path) == 0) {
            return hvd_fail(err, HVD_ERR_ARG, "--%s and --%s would both write %.200s",
                            outputs->items[i].option, option, output->path);
        }
    }
    outputs->count++;
    return 0;
}

static int gather(const struct bench_options *options, struct outputs *outputs,
                  struct hvd_error *err)
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
    int status = 0;

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && status == 0; i++) {
        if (wanted[i].name != NULL) {
            status =
                add(outputs, wanted[i].option, wanted[i].name, wanted[i].suffix, err);
        }
    }
    return status;
}

/* A file is made, and replaced, in its directory. */
static int check_directory(const struct output *output, struct hvd_error *err)
{
    const char *slash = strrchr(output->path, '/');
    char directory[PATH_MAX];

    snprintf(directory, sizeof(directory), "%.*s",
             slash != NULL ? (int)(slash - output->path) + 1 : 1,
             slash != NULL ? output->path : ".");
    return access(directory, W_OK | X_OK) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "--%s: cannot write %.150s: directory %.150s: %m",
                          output->option, output->path, directory);
}

static int check(const struct output *output, struct hvd_error *err)
{
    struct stat status;
    bool is_there = stat(output->path, &status) == 0;

    if (!is_there && errno != ENOENT && errno != ENOTDIR) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s: cannot write %.200s: %m", output->option,
                        output->path);
    }
    if (is_there && S_ISDIR(status.st_mode)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--%s: cannot write %.200s: it is a directory, expected a file",
                        output->option, output->path);
    }
    if (is_there && access(output->path, W_OK) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s: cannot write %.200s: %m", output->option,
                        output->path);
    }
    return is_there && !output->is_replaced ? 0 : check_directory(output, err);
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
                                  "--tune: the file exists and is no table of "
                                  "algorithms: %.250s",
                                  inner.text);
}

int bench_outputs_check(const struct bench_options *options, struct hvd_error *err)
{
    struct outputs outputs = {0};
    int status = gather(options, &outputs, err);

    for (int i = 0; i < outputs.count && status == 0; i++) {
        outputs.items[i].is_replaced = strcmp(outputs.items[i].option, "tune") == 0;
        status = check(&outputs.items[i], err);
    }
    return status < 0 || options->tune == NULL ? status : check_table(options->tune, err);
}
