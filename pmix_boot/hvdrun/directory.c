/* SPDX-License-Identifier: Apache-2.0 */
/* A private directory, and its removal. */
#include "pmix_boot/hvdrun/directory.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/env.h"

/* Descriptors that the walk may hold open. */
#define WALK_DEPTH 16

int hvdrun_directory_make(char *path, size_t bytes, struct hvd_error *err)
{
    const char *parent = getenv(HVD_ENV_TMPDIR);
    int length;

    parent = parent != NULL && parent[0] != '\0' ? parent : "/tmp";
    length = snprintf(path, bytes, "%s/hvdrun.XXXXXX", parent);
    if (length < 0 || (size_t)length >= bytes) {
        errno = ENAMETOOLONG;
    } else if (mkdtemp(path) != NULL) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_SYS, "cannot make a directory in %s: %m; set %s", parent,
                    HVD_ENV_TMPDIR);
}

static int remove_entry(const char *path, const struct stat *status, int type,
                        struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    (void)remove(path);
    return 0;
}

void hvdrun_directory_remove(const char *path)
{
    (void)nftw(path, remove_entry, WALK_DEPTH, FTW_DEPTH | FTW_PHYS);
}
