/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats init, allreduce and shutdown: descriptors, threads and memory must not grow. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kb = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb;
}

static int cycle(struct hvd_error *err)
{
    double value = 1;
    struct hvd_tensor tensor = {.name = "x",
                                .input = &value,
                                .output = &value,
                                .dtype = HVD_FLOAT64,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status = hvd_init(err);

    if (status == 0) {
        status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);
    }
    if (status == 0) {
        status = hvd_wait(request, err);
    }
    hvd_request_free(request);
    if (status == 0 && value != hvd_size()) {
        snprintf(err->text, sizeof(err->text), "sum over %d ranks is %g", hvd_size(),
                 value);
        status = HVD_ERR_ARG;
    }
    hvd_shutdown();
    return status;
}

int main(int argc, char **argv)
{
    int cycles = argc > 1 ? atoi(argv[1]) : 300;
    const int warm = 20;
    int fds = 0, threads = 0;
    long kb = 0;

    for (int i = 0; i < cycles; i++) {
        struct hvd_error err = {0};

        if (cycle(&err) != 0) {
            printf("cycle %d: %s\n", i, err.text);
            return 1;
        }
        if (i == warm) {
            fds = count_entries("/proc/self/fd");
            threads = count_entries("/proc/self/task");
            kb = resident_kb();
        }
    }
    printf("reinit: %d cycles, descriptors %+d, threads %+d, memory %+ld kB\n", cycles,
           count_entries("/proc/self/fd") - fds,
           count_entries("/proc/self/task") - threads, resident_kb() - kb);
    return 0;
}
