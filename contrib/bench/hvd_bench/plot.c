/* SPDX-License-Identifier: Apache-2.0 */
/* Lets plot.py draw. */
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "contrib/bench/hvd_bench/files.h"
#include "contrib/bench/hvd_bench/report_files.h"

extern char **environ;

int bench_plot(const char *json, const char *basename, struct hvd_error *err)
{
    char script[PATH_MAX], png[PATH_MAX], svg[PATH_MAX];
    char *const argv[] = {
        (char *)"/usr/bin/python3", script, (char *)json, png, svg, NULL};
    int status = bench_file_find("plot.py", script, sizeof(script), err), ended = 0;
    pid_t pid;

    if (status < 0) {
        return status;
    }
    snprintf(png, sizeof(png), "%s.png", basename);
    snprintf(svg, sizeof(svg), "%s.svg", basename);
    fflush(stdout);
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &ended, 0) != pid || ended != 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "cannot draw %s.png; the figures are in %s", basename, json);
    }
    return 0;
}
