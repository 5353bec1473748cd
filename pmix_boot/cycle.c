/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for the exchanges of this process. */
#include "pmix_boot/cycle.h"

#include <stddef.h>
#include <stdlib.h>

/* As long as the process lives: a shutdown does not make the server forget. */
static struct {
    struct hvd_cycle *last; /* of each list */
    int count;
} cycles;

/* FNV-1a. */
static uint64_t hash_ranks(const int *ranks, int count)
{
    uint64_t hash = 14695981039346656037u;

    for (int i = 0; i < count; i++) {
        for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ ((uint32_t)ranks[i] >> shift & 0xff)) * 1099511628211u;
        }
    }
    return hash;
}

static struct hvd_cycle *find(uint64_t list)
{
    for (int i = 0; i < cycles.count; i++) {
        if (cycles.last[i].list == list) {
            return &cycles.last[i];
        }
    }
    return NULL;
}

static struct hvd_cycle *add(uint64_t list)
{
    struct hvd_cycle *grown =
        realloc(cycles.last, (size_t)(cycles.count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return NULL;
    }
    cycles.last = grown;
    grown[cycles.count] = (struct hvd_cycle){.list = list};
    return &grown[cycles.count++];
}

int hvd_cycle_next(const int *ranks, int count, struct hvd_cycle *out,
                   struct hvd_error *err)
{
    uint64_t list = ranks != NULL ? hash_ranks(ranks, count) : 0;
    bool is_first = cycles.count == 0;
    struct hvd_cycle *cycle = find(list);

    if (cycle == NULL) {
        cycle = add(list);
    }
    if (cycle == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to count this start");
    }
    cycle->number++;
    cycle->is_first = is_first;
    *out = *cycle;
    return 0;
}
