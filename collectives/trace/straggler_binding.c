/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank runs, for the page of the straggler report. */
#include "collectives/trace/straggler_binding.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"

enum {
    MOST_CPUS = 8192
};

char *hvd_straggler_cpu_list(const bool *has_cpu, int count, char *text, size_t size)
{
    static const char more[] = "...";
    char range[32];
    size_t at = 0;

    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        int last = i;

        if (!has_cpu[i]) {
            continue;
        }
        while (last + 1 < count && has_cpu[last + 1]) {
            last++;
        }
        snprintf(range, sizeof(range), last > i ? "%s%d-%d" : "%s%d", at > 0 ? "," : "",
                 i, last);
        if (at + strlen(range) + sizeof(more) > size) {
            snprintf(text + at, size - at, "%s", more);
            return text;
        }
        at += (size_t)snprintf(text + at, size - at, "%s", range);
        i = last;
    }
    return text;
}

static void find_cpus(char *text, size_t size)
{
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    bool *has_cpu = calloc(MOST_CPUS, sizeof(has_cpu[0]));
    const size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);

    text[0] = '\0';
    if (set != NULL && has_cpu != NULL && sched_getaffinity(0, bytes, set) == 0) {
        for (int i = 0; i < MOST_CPUS; i++) {
            has_cpu[i] = CPU_ISSET_S(i, bytes, set);
        }
        hvd_straggler_cpu_list(has_cpu, MOST_CPUS, text, size);
    }
    CPU_FREE(set);
    free(has_cpu);
}

/* Copies the first of two variables that is set. */
static void copy_variable(const char *name, const char *other, char *text, size_t size)
{
    const char *value = getenv(name);

    if (value == NULL && other != NULL) {
        value = getenv(other);
    }
    snprintf(text, size, "%s", value != NULL ? value : "");
}

void hvd_straggler_binding_find(int rank, struct hvd_straggler_binding *binding)
{
    memset(binding, 0, sizeof(*binding));
    binding->mark = HVD_STRAGGLER_BINDING;
    binding->rank = rank;
    find_cpus(binding->cpus, sizeof(binding->cpus));
    copy_variable(HVD_ENV_GPU_INDEX, NULL, binding->gpu, sizeof(binding->gpu));
    copy_variable(HVD_ENV_NIC, HVD_ENV_UCX_NET_DEVICES, binding->nic,
                  sizeof(binding->nic));
}

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

bool hvd_straggler_binding_parse(const void *payload, size_t bytes, int size,
                                 struct hvd_straggler_binding *binding)
{
    struct hvd_straggler_binding copy;

    if (bytes != sizeof(copy)) {
        return false;
    }
    memcpy(&copy, payload, sizeof(copy));
    if (copy.mark != HVD_STRAGGLER_BINDING || copy.rank < 0 || copy.rank >= size ||
        !is_text(copy.cpus, sizeof(copy.cpus)) || !is_text(copy.gpu, sizeof(copy.gpu)) ||
        !is_text(copy.nic, sizeof(copy.nic))) {
        return false;
    }
    *binding = copy;
    return true;
}
