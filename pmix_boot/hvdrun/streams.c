/* SPDX-License-Identifier: Apache-2.0 */
/* DIR/rank.<r>/stdout and stderr; r has as many digits as the last rank, as in Horovod. */
#include "pmix_boot/hvdrun/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[HVDRUN_STREAMS] = {"stdout", "stderr"};

static int fail_file(const char *path, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_SYS, "cannot make %s for --output-filename: %m", path);
}

static int make_directory(const char *path, struct hvd_error *err)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : fail_file(path, err);
}

/* The descriptor of a rank's file, or a negative status. */
static int open_copy(const struct hvdrun_options *options, int rank, int stream,
                     struct hvd_error *err)
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
    return fd >= 0 ? fd : fail_file(path, err);
}

static int open_stream(const struct hvdrun_options *options, int rank, int number,
                       struct hvdrun_stream *stream, int *rank_end, struct hvd_error *err)
{
    char *label = NULL;
    int copy = -1;
    int ends[2];

    if (options->output_directory != NULL &&
        (copy = open_copy(options, rank, number, err)) < 0) {
        return copy;
    }
    if (options->has_prefix && asprintf(&label, "[%d]<%s>: ", rank, names[number]) < 0) {
        label = NULL;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(label);
        close(copy);
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot open a pipe to rank %d: %m; raise ulimit -n", rank);
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *stream = (struct hvdrun_stream){
        .fd = ends[0],
        .label = label,
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
