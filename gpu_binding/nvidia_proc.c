/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/driver/nvidia/gpus/BUS/information, which exists without NVML. */
#include "gpu_binding/nvidia_proc.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/gpu_name.h"

/* Bus ids are compared as numbers, since drivers write them with and without zeros. */
static bool is_same_bus(const char *a, const char *b)
{
    unsigned x[4];
    unsigned y[4];
    static const char format[] = "%x:%x:%x.%x";

    return sscanf(a, format, &x[0], &x[1], &x[2], &x[3]) == 4 &&
           sscanf(b, format, &y[0], &y[1], &y[2], &y[3]) == 4 &&
           memcmp(x, y, sizeof(x)) == 0;
}

static void read_information(FILE *file, struct hvd_gpu *gpu)
{
    char line[256];
    char model[128];

    while (fgets(line, sizeof(line), file) != NULL) {
        int minor = 0;

        if (sscanf(line, "Device Minor: %d", &minor) == 1 && minor >= 0) {
            gpu->device_minor = minor;
        } else if (sscanf(line, "Model: %127[^\n]", model) == 1) {
            hvd_gpu_short_model(model, gpu->model, sizeof(gpu->model));
        } else {
            sscanf(line, "GPU UUID: %47s", gpu->uuid);
        }
    }
}

static void read_gpu(const char *dir, const char *name, struct hvd_topology *topology)
{
    char path[512];
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/%s/information", dir, name) >=
        (int)sizeof(path)) {
        return;
    }
    for (int i = 0; i < topology->gpu_count; i++) {
        if (is_same_bus(name, topology->gpus[i].bus) &&
            (file = fopen(path, "re")) != NULL) {
            read_information(file, &topology->gpus[i]);
            fclose(file);
        }
    }
}

void hvd_nvidia_proc_read(const char *dir, struct hvd_topology *topology)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;

    if (folder == NULL) {
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        read_gpu(dir, entry->d_name, topology);
    }
    closedir(folder);
}
