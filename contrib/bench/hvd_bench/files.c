/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files from the place of the program, so that an installed tree can be moved. */
#include "contrib/bench/hvd_bench/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

/* HVD_BENCH_LIBDIR: from the directory of programs to that of libraries, ../lib. */
static const char *const places[] = {"", HVD_BENCH_LIBDIR "/hvd/bench/"};
static const char *const helpers[] = {HVD_BENCH_LIBDIR "/hvd/hvd-boot",
                                      "../../../pmix_boot/hvd-boot"};

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

int bench_file_find(const char *name, char *path, size_t room, struct hvd_error *err)
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

void bench_file_set_helper(void)
{
    char directory[PATH_MAX], path[2 * PATH_MAX];

    if (find_directory(directory) < 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, helpers[i]);
        if (access(path, X_OK) == 0) {
            setenv(HVD_ENV_BOOT_HELPER, path, 0);
            return;
        }
    }
}
