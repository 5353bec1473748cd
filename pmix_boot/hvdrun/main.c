/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun, also installed as horovodrun: starts the ranks of a job. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/nccl_files.h"
#include "pmix_boot/hvdrun/allocation.h"
#include "pmix_boot/hvdrun/help.h"
#include "pmix_boot/hvdrun/launcher.h"
#include "pmix_boot/hvdrun/local.h"
#include "pmix_boot/hvdrun/options.h"
#include "pmix_boot/hvdrun/streams.h"

enum {
    EXIT_USAGE = 2
};

static void print_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "hvdrun: %s\n", line + sizeof("hvd: ") - 1);
}

static void print_remarks(const struct hvdrun_options *options)
{
    for (int i = 0; i < options->remarks.count; i++) {
        hvd_log(HVD_LOG_WARN, "%s", options->remarks.items[i]);
    }
}

/* Names the command that explains a failure of NCCL. */
static void advise(const struct hvdrun_options *options, const char *failure)
{
    const char *directory =
        hvdrun_string_list_get_variable(&options->settings, HVD_ENV_NCCL_FILES);
    char line[PATH_MAX + 64];

    if (hvd_nccl_files_advise(directory != NULL ? directory : getenv(HVD_ENV_NCCL_FILES),
                              failure, line, sizeof(line))) {
        fprintf(stderr, "hvdrun: %s\n", line);
    }
}

static int run_command(struct hvdrun_options *options)
{
    enum hvdrun_launcher launcher;
    struct hvd_error err = {0};
    char host[256] = "localhost";
    int exit_code = EXIT_USAGE;

    (void)gethostname(host, sizeof(host) - 1);
    hvd_log_to(print_line, options->is_verbose ? HVD_LOG_INFO : HVD_LOG_WARN);
    print_remarks(options);
    if (hvdrun_allocation_apply(options, (const char *const *)environ, &err) == 0 &&
        hvdrun_launcher_choose(options, (const char *const *)environ, host, &launcher,
                               &err) == 0) {
        exit_code = EXIT_FAILURE;
        if (launcher == HVDRUN_LAUNCHER_LOCAL &&
            hvdrun_streams_check_files(options, &err) < 0) {
            exit_code = EXIT_USAGE;
        } else if (launcher == HVDRUN_LAUNCHER_LOCAL) {
            exit_code = hvdrun_local_run(options, host, &err);
        } else {
            (void)hvdrun_launcher_exec(options, launcher, &err);
        }
    }
    if (err.status != 0) {
        fprintf(stderr, "hvdrun: %s\n", err.text);
        advise(options, err.text);
    }
    return exit_code;
}

static int act_on_options(struct hvdrun_options *options)
{
    switch (options->action) {
    case HVDRUN_HELP:
        hvdrun_help_print(stdout);
        return EXIT_SUCCESS;
    case HVDRUN_VERSION:
        puts(HVD_VERSION);
        return EXIT_SUCCESS;
    case HVDRUN_CHECK_BUILD:
        hvdrun_build_print(stdout);
        return EXIT_SUCCESS;
    case HVDRUN_RUN:
        break;
    }
    return run_command(options);
}

int main(int argc, char **argv)
{
    struct hvdrun_options options;
    struct hvd_error err = {0};
    int exit_code = EXIT_USAGE;

    if (hvdrun_options_read(&options, argc, argv, &err) < 0) {
        fprintf(stderr, "hvdrun: %s\n", err.text);
    } else {
        exit_code = act_on_options(&options);
    }
    hvdrun_options_finish(&options);
    return exit_code;
}
