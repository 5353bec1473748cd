/* SPDX-License-Identifier: Apache-2.0 */
/* The helper is found from the place of libhvd, so that an installed tree can be moved. */
#include "pmix_boot/helper_path.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

/* Relative to the directory of libhvd, or of the program that boot is linked into. */
static const char *const places[] = {
    "hvd/hvd-boot", /* installed */
    "../pmix_boot/hvd-boot", /* a library or program in the build tree */
    "../../pmix_boot/hvd-boot", /* a test in the build tree */
};

/* The directory of the file that holds this function, without links. */
static int find_own_directory(char *directory)
{
    struct link_map *map = NULL;
    Dl_info info;
    char *slash;

    /* The name of the program itself is empty there. */
    if (dladdr1((void *)hvd_helper_path, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        realpath(map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe", directory) ==
            NULL) {
        return HVD_ERR_SYS;
    }
    slash = strrchr(directory, '/');
    slash[slash == directory ? 1 : 0] = '\0';
    return 0;
}

int hvd_helper_path(char *path, size_t bytes, struct hvd_error *err)
{
    const char *chosen = getenv(HVD_ENV_BOOT_HELPER);
    char directory[PATH_MAX] = "";

    if (chosen != NULL) {
        snprintf(path, bytes, "%s", chosen);
        return 0;
    }
    if (find_own_directory(directory) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find out where libhvd is: %m");
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(path, bytes, "%s/%s", directory, places[i]);

        if (length > 0 && (size_t)length < bytes && access(path, X_OK) == 0) {
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "no %s/hvd/hvd-boot, which joins ranks through PMIx: this hvd was "
                    "built without PMIx, or %s must say where it is",
                    directory, HVD_ENV_BOOT_HELPER);
}
