/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and runs the scripts. */
#include "contrib/bench/hvd_bench/scripts.h"

#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

extern char **environ;

static const char python[] = "/usr/bin/python3";

/* HVD_BENCH_LIBDIR: the path from the directory of programs to that of libraries,
 * ../lib. */
static const char *const places[] = {"", HVD_BENCH_LIBDIR "/hvd/bench/"};

/* The files of libhvd, where they are installed and where they are built. */
static const struct {
    const char *variable;
    const char *files[2];
} parts[] = {
    {HVD_ENV_BOOT_HELPER,
     {HVD_BENCH_LIBDIR "/hvd/hvd-boot", "../../../pmix_boot/hvd-boot"}},
    {HVD_ENV_UCX_MODULE,
     {HVD_BENCH_LIBDIR "/hvd/hvd_ucx.so",
      "../../../collectives/transport/net/ucx/hvd_ucx.so"}},
};

static int find_directory(char directory[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", directory, PATH_MAX - 1);
    char *slash;

    directory[length < 0 ? 0 : length] = '\0';
    slash = strrchr(directory, '/');
    if (slash == NULL) {
        return HVD_ERR_SYS;
    }
    slash[0] = '\0';
    return 0;
}

int bench_script_find(const char *name, char *path, size_t room, struct hvd_error *err)
{
    char directory[PATH_MAX];

    if (find_directory(directory) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find out where hvd-bench is: %m");
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(path, room, "%s/%s%s", directory, places[i], name);

        if (length > 0 && (size_t)length < room && access(path, R_OK) == 0) {
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no %s in %s/%s/hvd/bench", name, directory,
                    HVD_BENCH_LIBDIR);
}

void bench_script_set_parts(void)
{
    char directory[PATH_MAX], path[2 * PATH_MAX];

    if (find_directory(directory) < 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        for (int j = 0; j < 2; j++) {
            snprintf(path, sizeof(path), "%s/%s", directory, parts[i].files[j]);
            if (access(path, R_OK) == 0) {
                setenv(parts[i].variable, path, 0);
                break;
            }
        }
    }
}

int bench_lab(int argc, char **argv)
{
    char script[PATH_MAX], self[PATH_MAX] = "";
    char **words = calloc((size_t)argc + 3, sizeof(words[0]));
    struct hvd_error err = {0};

    if (words == NULL || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
        bench_script_find("lab.py", script, sizeof(script), &err) < 0) {
        fprintf(stderr, "hvd-bench: cannot start the lab: %s\n",
                err.text[0] != '\0' ? err.text : "out of memory, or no /proc");
        free(words);
        return 1;
    }
    words[0] = (char *)python;
    words[1] = script;
    words[2] = (char *)"--hvd-bench";
    words[3] = self;
    memcpy(&words[4], &argv[2], (size_t)(argc - 2) * sizeof(words[0]));
    execv(python, words);
    fprintf(stderr, "hvd-bench: cannot start %s: %m\n", python);
    free(words);
    return 1;
}

/* Runs plot.py with these arguments, the last of which is NULL. Returns
 * HVD_ERR_UNSUPPORTED if the script cannot be found; *ended is its wait status. */
static int run_plot(const char *const *words, int *ended, struct hvd_error *err)
{
    char script[PATH_MAX];
    const char *argv[8] = {python, script};
    int status = bench_script_find("plot.py", script, sizeof(script), err), count = 2;
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
    int ended = 0, status = run_plot((const char *const[]){"--check", NULL}, &ended, err);

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
    status = run_plot((const char *const[]){json, png, svg, NULL}, &ended, err);
    return status < 0 || ended == 0
               ? status
               : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "cannot draw %.150s.png; the figures are in %.150s", basename,
                          json);
}
