/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program, or a function, in a child process with a time limit, and keeps what it
 * prints. */
#ifndef HVD_INFO_PROCESS_H
#define HVD_INFO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

enum {
    /* enough for what Slurm prints about 20,000 nodes */
    HVD_INFO_PROCESS_LARGE_BYTES = 16 << 20,
};

struct hvd_info_process {
    /* the program, to be found in PATH, and its arguments; or NULL */
    const char *const *argv;
    /* what the child calls if argv is NULL; its exit status is then 0 or 1 */
    int (*function)(struct hvd_error *err);
    char **environment; /* of the child; NULL: that of this process */
    int limit_ms;
    size_t most_bytes; /* of its output; 0: a megabyte */
};

/* The standard output and standard error of the child, and how it ended. */
struct hvd_info_output {
    char *text; /* ends with a zero byte; freed by hvd_info_output_finish */
    size_t bytes;
    bool is_cut; /* it printed more than most_bytes */
    bool is_late; /* it was killed at the time limit */
    bool is_missing; /* there is no such program */
    int exit_status; /* -1: a signal has killed it */
};

/* Runs the child and waits for its end. When the time limit has passed, kills it and the
 * processes that it has started. */
int hvd_info_process_run(const struct hvd_info_process *process,
                         struct hvd_info_output *output, struct hvd_error *err);

/* Returns whether the child ended by itself, with exit status 0. */
bool hvd_info_output_is_good(const struct hvd_info_output *output);

void hvd_info_output_finish(struct hvd_info_output *output);

#endif
