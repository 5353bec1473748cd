/* SPDX-License-Identifier: Apache-2.0 */
/* Matches messages with receives, oldest first. Pure.
 *
 * One table holds receives that wait for messages, another one messages that wait for
 * receives. A new item searches the other table first, and enters its own table if
 * nothing there fits.
 *
 * Two items fit if their sets and tags are equal, and either their ranks are equal or one
 * of them is HVD_MATCHING_ANY. Set and tag are hashed; items with the same set and tag
 * are searched one by one. */
#ifndef HVD_MATCHING_H
#define HVD_MATCHING_H

#include <stddef.h>
#include <stdint.h>

enum {
    HVD_MATCHING_ANY = -1, /* rank of a receive that accepts any rank */
    HVD_MATCHING_BUCKETS = 256,
};

/* The first member of a struct that the caller owns. */
struct hvd_matching_item {
    struct hvd_matching_item *next;
    int rank; /* the sending rank */
    int set;
    int64_t tag;
};

/* Zeroed when empty. */
struct hvd_matching {
    struct hvd_matching_bucket {
        struct hvd_matching_item *first;
        struct hvd_matching_item *last;
    } buckets[HVD_MATCHING_BUCKETS];
    size_t count;
};

/* Appends the item. */
void hvd_matching_enter(struct hvd_matching *table, struct hvd_matching_item *item);

/* Removes the oldest item that fits key; NULL if there is none. */
struct hvd_matching_item *hvd_matching_take(struct hvd_matching *table,
                                            const struct hvd_matching_item *key);

/* Removes an item of this set; NULL if there is none. Searches the whole table. */
struct hvd_matching_item *hvd_matching_take_of_set(struct hvd_matching *table, int set);

/* Removes any item; NULL if the table is empty. */
struct hvd_matching_item *hvd_matching_take_any(struct hvd_matching *table);

#endif
