/* SPDX-License-Identifier: Apache-2.0 */
/* Beside bin/hvdrun, else where it was installed to; in a build tree, in the sources. */
#include "pmix_boot/hvdrun/python.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_package(const char *directory)
{
    char package[PATH_MAX];
    int length = snprintf(package, sizeof(package), "%s/horovod/__init__.py", directory);

    return length > 0 && (size_t)length < sizeof(package) && access(package, R_OK) == 0;
}

void hvdrun_python_directory(char *path, size_t bytes)
{
    char own[PATH_MAX];
    char *slash;

    if (realpath("/proc/self/exe", own) != NULL) {
        slash = strrchr(own, '/');
        *slash = '\0';
        snprintf(path, bytes, "%s/../lib/hvd/python", own);
        if (has_package(path)) {
            return;
        }
    }
    snprintf(path, bytes, "%s", HVD_PYTHON_DIR);
    if (!has_package(path)) {
        path[0] = '\0';
    }
}
