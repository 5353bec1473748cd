/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the topologies that tests use. */
#include "tests/gpu_binding/node_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu_binding/base/error.h"

const char *const node_file_names[] = {
    "built-c4140-4xv100",
    "built-dgx1v-8xv100",
    "built-ndv2-8xv100",
    "built-vm-no-locality",
    "power9-4xv100",
    "power9-4xv100-gpumem-nodes",
    "x86-1s-mixed-vendor",
    "x86-2xp100-one-socket",
    "x86-4xh100-snc4",
    "x86-4xh200-nps4",
    "x86-4xh200-nps4-nvml",
    "x86-8xmi250-amd-only",
    "x86-8xt4",
    "x86-no-gpu",
    NULL,
};

static bool find(const char *folder, const char *root, const char *name, char *path,
                 size_t size)
{
    snprintf(path, size, "%s/%s/%s.xml", root, folder, name);
    return access(path, R_OK) == 0;
}

bool node_file_load(const char *root, const char *name, struct hvd_topology *topology)
{
    char path[512];
    struct hvd_topology_source source = {.xml_file = path};
    struct hvd_error err;

    if (!find("tests/gpu_binding/topologies", root, name, path, sizeof(path)) &&
        !find("../shared/topologies", root, name, path, sizeof(path))) {
        return false;
    }
    if (hvd_topology_load(topology, &source, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return true;
}
