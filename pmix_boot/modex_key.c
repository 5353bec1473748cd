/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of this process's modexes. */
#include "pmix_boot/modex_key.h"

#include <stddef.h>
#include <stdlib.h>

/* The counters are kept until the process ends, because the PMIx server keeps its values
 * even after hvd has shut down. */
static struct {
    struct hvd_modex_key *last; /* the last key of each list */
    int count;
} keys;

/* Hashes a list of ranks (FNV-1a). */
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

static struct hvd_modex_key *find_key(uint64_t list)
{
    for (int i = 0; i < keys.count; i++) {
        if (keys.last[i].list == list) {
            return &keys.last[i];
        }
    }
    return NULL;
}

static struct hvd_modex_key *add_key(uint64_t list)
{
    struct hvd_modex_key *grown =
        realloc(keys.last, (size_t)(keys.count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return NULL;
    }
    keys.last = grown;
    grown[keys.count] = (struct hvd_modex_key){.list = list};
    return &grown[keys.count++];
}

int hvd_modex_key_next(const int *ranks, int count, struct hvd_modex_key *out,
                       struct hvd_error *err)
{
    uint64_t list = ranks != NULL ? hash_ranks(ranks, count) : 0;
    bool is_first = keys.count == 0;
    struct hvd_modex_key *key = find_key(list);

    if (key == NULL) {
        key = add_key(list);
    }
    if (key == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to count this start");
    }
    key->number++;
    key->is_first = is_first;
    *out = *key;
    return 0;
}
