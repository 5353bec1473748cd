/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers, with open addressing and linear probing. The caller owns the
 * items and their keys.
 *
 * Threads: one at a time, or under the caller's lock. */
#ifndef HVD_HASH_TABLE_H
#define HVD_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_hash_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

/* An empty table is all zeros. */
struct hvd_hash_table {
    struct hvd_hash_slot *slots;
    size_t capacity; /* 0, or a power of two */
    size_t count;
};

typedef bool (*hvd_hash_table_equal)(const void *item, const void *key);

/* Returns the item with this hash that equals the key, or NULL. */
void *hvd_hash_table_find(const struct hvd_hash_table *table, uint64_t hash,
                          hvd_hash_table_equal equal, const void *key);

/* Adds an item, which is not NULL and whose key is not in the table. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_hash_table_add(struct hvd_hash_table *table, uint64_t hash, void *item);

/* Takes an item out; returns it, or NULL if it is not there. */
void *hvd_hash_table_remove(struct hvd_hash_table *table, uint64_t hash,
                            hvd_hash_table_equal equal, const void *key);

/* Returns the next item, in no particular order, or NULL at the end. Begin with *cursor
 * 0. Nothing may be added or removed meanwhile. */
void *hvd_hash_table_next(const struct hvd_hash_table *table, size_t *cursor);

void hvd_hash_table_finish(
    struct hvd_hash_table *table); /* frees the slots, not the items */

/* Identifies a tensor: its process set and name. */
struct hvd_key {
    int32_t set;
    const char *name; /* borrowed */
    uint64_t hash;
};

struct hvd_key hvd_key_make(int32_t set, const char *name);

/* Whether an item that begins with its struct hvd_key has this key. */
bool hvd_key_equal(const void *item, const void *key);

/* Returns a well-mixed hash of a number. */
uint64_t hvd_hash_number(uint64_t number);

#endif
