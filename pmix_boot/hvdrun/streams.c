/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a rank are DIR/rank.<r>/stdout and stderr; r has as many digits as the
 * last rank, as in Horovod. */
#include "pmix_boot/hvdrun/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/hvdrun/option_table.h"
#include "pmix_boot/hvdrun/options.h"

static const char *const names[HVDRUN_STREAMS] = {"stdout", "stderr"};

static int fail_file(const char *path, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_SYS, "cannot make %s for --output-filename: %m", path);
}

static int make_directory(const char *path, struct hvd_error *err)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : fail_file(path, err);
}

/* Opens a rank's file. Returns its descriptor, or a negative status. The caller frees
 * *name. */
static int open_copy(const struct hvdrun_options *options, int rank, int stream,
                     char **name, struct hvd_error *err)
{
    const char *directory = options->output_directory;
    int digits = snprintf(NULL, 0, "%d", options->ranks - 1);
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/rank.%0*d", directory, digits, rank);
    int status = make_directory(directory, err);
    int fd;

    if (status < 0 || (status = make_directory(path, err)) < 0) {
        return status;
    }
    snprintf(path + length, sizeof(path) - (size_t)length, "/%s", names[stream]);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    *name = fd >= 0 ? strdup(path) : NULL;
    return fd >= 0 ? fd : fail_file(path, err);
}

static int open_stream(const struct hvdrun_options *options, int rank, int number,
                       struct hvdrun_stream *stream, int *rank_end, struct hvd_error *err)
{
    char *label = NULL;
    char *copy_path = NULL;
    int copy = -1;
    int ends[2];

    if (options->output_directory != NULL &&
        (copy = open_copy(options, rank, number, &copy_path, err)) < 0) {
        return copy;
    }
    if (options->has_prefix && asprintf(&label, "[%d]<%s>: ", rank, names[number]) < 0) {
        label = NULL;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        hvd_fail(err, HVD_ERR_SYS, "cannot open a pipe to rank %d: %m; raise ulimit -n",
                 rank);
        free(label);
        free(copy_path);
        if (copy >= 0) {
            close(copy);
        }
        return HVD_ERR_SYS;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *stream = (struct hvdrun_stream){
        .fd = ends[0],
        .label = label,
        .copy_path = copy_path,
        .lines = {.out = number == HVDRUN_STDOUT ? STDOUT_FILENO : STDERR_FILENO,
                  .copy = copy,
                  .label = label,
                  .has_time = options->has_time},
    };
    *rank_end = ends[1];
    return 0;
}

int hvdrun_streams_open(const struct hvdrun_options *options, int rank,
                        struct hvdrun_stream streams[HVDRUN_STREAMS],
                        int rank_ends[HVDRUN_STREAMS], struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < HVDRUN_STREAMS && status == 0; i++) {
        status = open_stream(options, rank, i, &streams[i], &rank_ends[i], err);
    }
    return status;
}

void hvdrun_streams_close(struct hvdrun_stream streams[HVDRUN_STREAMS])
{
    for (int i = 0; i < HVDRUN_STREAMS; i++) {
        if (streams[i].fd >= 0) {
            (void)hvdrun_lines_end(&streams[i].lines);
            close(streams[i].fd);
        }
        if (streams[i].lines.copy >= 0) {
            close(streams[i].lines.copy);
        }
        free(streams[i].label);
        free(streams[i].copy_path);
        streams[i] = (struct hvdrun_stream){.fd = -1, .lines.copy = -1};
    }
}

int hvdrun_streams_input(int rank, struct hvd_error *err)
{
    int fd = -1;

    if (rank == 0 && !isatty(STDIN_FILENO)) {
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    }
    if (fd < 0) {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    return fd >= 0 ? fd : hvd_fail(err, HVD_ERR_SYS, "cannot open /dev/null: %m");
}

/* --- files that options name -------------------------------------------------------- */

static int fail_option(const char *option, const char *path, struct hvd_error *err)
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
        return errno == 0 && access(path, W_OK) == 0 ? 0 : fail_option(option, path, err);
    }
    write_parent(path, parent);
    return errno == ENOENT && access(parent, W_OK | X_OK) == 0
               ? 0
               : fail_option(option, path, err);
}

/* Checks a directory. If it does not exist, it must be possible to create it in its
 * parent. */
static int check_directory(const char *option, const char *path, struct hvd_error *err)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        return check_file(option, path, err);
    }
    errno = ENOTDIR;
    return S_ISDIR(status.st_mode) && access(path, W_OK | X_OK) == 0
               ? 0
               : fail_option(option, path, err);
}

/* Some values are not files: "0" and "1" of a report, and Horovod's DYNAMIC of a
 * timeline. */
static bool is_file(const char *value)
{
    return strcmp(value, "0") != 0 && strcmp(value, "1") != 0 &&
           strcmp(value, "DYNAMIC") != 0;
}

int hvdrun_streams_check_files(const struct hvdrun_options *options,
                               struct hvd_error *err)
{
    int status = 0;

    if (options->output_directory != NULL) {
        status = check_directory("output-filename", options->output_directory, err);
    }
    for (const struct hvdrun_option *option = hvdrun_option_table;
         option->name != NULL && status == 0; option++) {
        const char *value =
            option->kind == HVDRUN_OPTION_FILE
                ? hvdrun_string_list_get_variable(&options->settings, option->variable)
                : NULL;

        if (value != NULL && is_file(value)) {
            status = check_file(option->name, value, err);
        }
    }
    return status;
}
