/* SPDX-License-Identifier: Apache-2.0 */
/* Which message goes to which receive: the oldest that fits. Pure.
 *
 * There is a table of receives that wait for messages, and one of messages that wait for
 * receives. Who comes looks into the other table first, and enters its own if nothing
 * there fits.
 *
 * Items fit if set and tag are equal, and so is the rank or one of the two has
 * HVD_MATCHING_ANY. They are found by set and tag; those of all ranks with these are
 * looked through. */
#ifndef HVD_MATCHING_H
#define HVD_MATCHING_H

#include <stddef.h>
#include <stdint.h>

enum {
    HVD_MATCHING_ANY = -1, /* rank: of a receive from whatever rank */
    HVD_MATCHING_BUCKETS = 256,
};

/* First in a struct of the caller's, who owns it. */
struct hvd_matching_item {
    struct hvd_matching_item *next;
    int rank; /* that sends */
    int set;
    int64_t tag;
};

/* Zeroed is empty. */
struct hvd_matching {
    struct hvd_matching_bucket {
        struct hvd_matching_item *first;
        struct hvd_matching_item *last;
    } buckets[HVD_MATCHING_BUCKETS];
    size_t count;
};

/* Behind all others. */
void hvd_matching_enter(struct hvd_matching *table, struct hvd_matching_item *item);

/* Takes out the oldest that fits to key; NULL: there is none. */
struct hvd_matching_item *hvd_matching_take(struct hvd_matching *table,
                                            const struct hvd_matching_item *key);

/* Takes out one of this set; NULL: there is none. Looks through the table. */
struct hvd_matching_item *hvd_matching_take_of_set(struct hvd_matching *table, int set);

/* Takes out any; NULL: the table is empty. */
struct hvd_matching_item *hvd_matching_take_any(struct hvd_matching *table);

#endif
