/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers. */
#include "collectives/agreement/hash_table.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

static const size_t first_capacity = 64;

/* Returns the index of the slot that has the item, or of the free slot for it. equal may
 * be NULL if the item is not in the table. */
static size_t find_slot(const struct hvd_hash_table *table, uint64_t hash,
                        hvd_hash_table_equal equal, const void *key)
{
    size_t mask = table->capacity - 1;
    size_t at = (size_t)hash & mask;

    while (table->slots[at].item != NULL &&
           (equal == NULL || table->slots[at].hash != hash ||
            !equal(table->slots[at].item, key))) {
        at = (at + 1) & mask;
    }
    return at;
}

void *hvd_hash_table_find(const struct hvd_hash_table *table, uint64_t hash,
                          hvd_hash_table_equal equal, const void *key)
{
    if (table->count == 0) {
        return NULL;
    }
    return table->slots[find_slot(table, hash, equal, key)].item;
}

/* Doubles the table, which is at most half full so that probing stays short. */
static int grow_table(struct hvd_hash_table *table)
{
    struct hvd_hash_table bigger = {
        .capacity = table->capacity > 0 ? 2 * table->capacity : first_capacity,
        .count = table->count,
    };

    bigger.slots = calloc(bigger.capacity, sizeof(bigger.slots[0]));
    if (bigger.slots == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].item != NULL) {
            bigger.slots[find_slot(&bigger, table->slots[i].hash, NULL, NULL)] =
                table->slots[i];
        }
    }
    free(table->slots);
    *table = bigger;
    return 0;
}

int hvd_hash_table_add(struct hvd_hash_table *table, uint64_t hash, void *item)
{
    if (2 * (table->count + 1) > table->capacity && grow_table(table) != 0) {
        return HVD_ERR_NOMEM;
    }
    table->slots[find_slot(table, hash, NULL, NULL)] =
        (struct hvd_hash_slot){.hash = hash, .item = item};
    table->count++;
    return 0;
}

/* Moves later items of the same run back over a freed slot, so that probing finds
 * them. */
static void close_gap(struct hvd_hash_table *table, size_t gap)
{
    size_t mask = table->capacity - 1;

    for (size_t at = (gap + 1) & mask; table->slots[at].item != NULL;
         at = (at + 1) & mask) {
        size_t home = (size_t)table->slots[at].hash & mask;

        if (((at - home) & mask) >= ((at - gap) & mask)) {
            table->slots[gap] = table->slots[at];
            gap = at;
        }
    }
    table->slots[gap] = (struct hvd_hash_slot){0};
}

void *hvd_hash_table_remove(struct hvd_hash_table *table, uint64_t hash,
                            hvd_hash_table_equal equal, const void *key)
{
    size_t at;
    void *item;

    if (table->count == 0) {
        return NULL;
    }
    at = find_slot(table, hash, equal, key);
    item = table->slots[at].item;
    if (item != NULL) {
        close_gap(table, at);
        table->count--;
    }
    return item;
}

void *hvd_hash_table_next(const struct hvd_hash_table *table, size_t *cursor)
{
    while (*cursor < table->capacity) {
        void *item = table->slots[(*cursor)++].item;

        if (item != NULL) {
            return item;
        }
    }
    return NULL;
}

void hvd_hash_table_finish(struct hvd_hash_table *table)
{
    free(table->slots);
    *table = (struct hvd_hash_table){0};
}

uint64_t hvd_hash_number(uint64_t number)
{
    number ^= number >> 32;
    number *= 0xd6e8feb86659fd93u; /* an odd number with well-mixed bits */
    number ^= number >> 32;
    return number;
}

/* FNV-1a, with a final mix because the table uses the low bits. */
struct hvd_key hvd_key_make(int32_t set, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint32_t)set;

    for (const char *at = name; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    }
    return (struct hvd_key){.set = set, .name = name, .hash = hvd_hash_number(hash)};
}

bool hvd_key_equal(const void *item, const void *key)
{
    const struct hvd_key *a = item, *b = key;

    return a->hash == b->hash && a->set == b->set && strcmp(a->name, b->name) == 0;
}
