/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers. The items and their keys are the caller's.
 *
 * Threads: one at a time, or the caller's lock. Open addressing with linear probing. */
#ifndef HVD_HASH_TABLE_H
#define HVD_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_hash_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

/* Zeroed is an empty table. */
struct hvd_hash_table {
    struct hvd_hash_slot *slots;
    size_t capacity; /* 0, or a power of two */
    size_t count;
};

typedef bool (*hvd_hash_table_equal)(const void *item, const void *key);

/* The item whose hash is `hash` and that equals key; NULL when there is none. */
void *hvd_hash_table_find(const struct hvd_hash_table *table, uint64_t hash,
                          hvd_hash_table_equal equal, const void *key);

/* Adds an item, not NULL, whose key is not in the table. Returns 0 or HVD_ERR_NOMEM. */
int hvd_hash_table_add(struct hvd_hash_table *table, uint64_t hash, void *item);

/* Takes an item out; returns it, or NULL when it is not there. */
void *hvd_hash_table_remove(struct hvd_hash_table *table, uint64_t hash,
                            hvd_hash_table_equal equal, const void *key);

/* Walks over all items, in no order that means anything: start with *cursor 0; NULL at
 * the end. Nothing may be added or removed meanwhile. */
void *hvd_hash_table_next(const struct hvd_hash_table *table, size_t *cursor);

void hvd_hash_table_finish(
    struct hvd_hash_table *table); /* frees the slots, not the items */

/* What tensors are told apart by: process set and name. */
struct hvd_key {
    int32_t set;
    const char *name; /* borrowed */
    uint64_t hash;
};

struct hvd_key hvd_key_make(int32_t set, const char *name);

/* Whether an item that begins with its struct hvd_key has this key. */
bool hvd_key_equal(const void *item, const void *key);

/* A good hash of a number. */
uint64_t hvd_hash_number(uint64_t number);

#endif
