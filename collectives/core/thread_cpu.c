/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU of the progress thread, if the user chooses one: HOROVOD_THREAD_AFFINITY. */
#include "collectives/core/thread_cpu.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"

/* Reads the number at the start of text, up to a comma or the end; -1: there is none. */
static int read_cpu(const char *text, const char **end)
{
    char *after = NULL;
    long cpu;

    errno = 0;
    cpu = strtol(text, &after, 10);
    *end = after;
    return !isdigit((unsigned char)text[0]) || errno != 0 || cpu >= CPU_SETSIZE ||
                   (*after != '\0' && *after != ',')
               ? -1
               : (int)cpu;
}

int hvd_thread_cpu_find(const char *list, int local_rank, int local_size,
                        struct hvd_error *err)
{
    const char *text = list;
    int found = -1;
    int count = 0;

    for (;;) {
        const char *end;
        int cpu = read_cpu(text, &end);

        if (cpu < 0) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "%s=%.64s is not a list of cpus such as 0,8",
                            HVD_ENV_THREAD_AFFINITY, list);
        }
        found = count == local_rank ? cpu : found;
        count++;
        if (*end == '\0') {
            break;
        }
        text = end + 1;
    }
    if (count < local_size) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s=%.64s names %d cpus for the %d ranks of this node",
                        HVD_ENV_THREAD_AFFINITY, list, count, local_size);
    }
    return found;
}

int hvd_thread_cpu_pin(pthread_t thread, int cpu, struct hvd_error *err)
{
    cpu_set_t cpus;
    int error;

    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    error = pthread_setaffinity_np(thread, sizeof(cpus), &cpus);
    return error == 0 ? 0
                      : hvd_fail(err, HVD_ERR_SYS,
                                 "cannot move the progress thread to cpu %d (%s): %s",
                                 cpu, HVD_ENV_THREAD_AFFINITY, strerror(error));
}
