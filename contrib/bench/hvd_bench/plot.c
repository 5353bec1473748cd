/* SPDX-License-Identifier: Apache-2.0 */
/* Lets plot.py draw. */
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "contrib/bench/hvd_bench/files.h"
#include "contrib/bench/hvd_bench/report_files.h"

extern char **environ;

/* 0, or HVD_ERR_UNSUPPORTED when plot.py could not be found; *ended is its wait status. words:
 * behind its name, ends with NULL. */
static int run(const char *const *words, int *ended, struct hvd_error *err)
{
    char script[PATH_MAX];
    const char *argv[8] = {"/usr/bin/python3", script};
    int status = bench_file_find("plot.py", script, sizeof(script), err), count = 2;
    pid_t pid;

    if (status < 0) {
        return status;
    }
    for (; *words != NULL; words++) {
        argv[count++] = *words;
    }
    fflush(stdout);
    *ended = -1;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0) {
        waitpid(pid, ended, 0);
    }
    return 0;
}

int bench_plot_check(struct hvd_error *err)
{
    int ended = 0, status = run((const char *const[]){"--check", NULL}, &ended, err);

    return status < 0 || ended == 0
               ? status
               : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "--plot needs /usr/bin/python3 with matplotlib; --json writes "
                          "the same figures without it");
}

int bench_plot(const char *json, const char *basename, struct hvd_error *err)
{
    char png[PATH_MAX], svg[PATH_MAX];
    int ended = 0, status;

    snprintf(png, sizeof(png), "%s.png", basename);
    snprintf(svg, sizeof(svg), "%s.svg", basename);
    status = run((const char *const[]){json, png, svg, NULL}, &ended, err);
    return status < 0 || ended == 0
               ? status
               : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "cannot draw %.150s.png; the figures are in %.150s", basename,
                          json);
}
