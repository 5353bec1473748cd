/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets as the public interface sees them: those that this rank has seen added.
 *
 * Threads: the caller's lock (the engine's mail). */
#ifndef HVD_SETS_H
#define HVD_SETS_H

#include <stdint.h>

/* What a rank starts without a name is matched by its number. */
enum hvd_count {
    HVD_COUNT_BARRIERS,
    HVD_COUNT_SETS, /* added and removed; of the global set */
    HVD_COUNTS
};

struct hvd_set {
    int id;
    int count;
    int *ranks; /* ascending */
    int64_t counts[HVD_COUNTS]; /* that this rank has started */
};

/* Zeroed: none. */
struct hvd_sets {
    struct hvd_set *sets; /* [count] ascending by id */
    int count;
};

/* Adds a set (copied). Returns 0 or HVD_ERR_NOMEM. */
int hvd_sets_add(struct hvd_sets *sets, int id, const int *ranks, int count);
void hvd_sets_remove(struct hvd_sets *sets, int id); /* one that is not there is fine */
void hvd_sets_finish(struct hvd_sets *sets);

/* All ranks have joined: they count what they start in the global set from 0 again, for those who
 * had joined have not started what the others have. */
void hvd_sets_recount(struct hvd_sets *sets);

/* How many of these this rank had started in the set; one more from now on. */
int64_t hvd_sets_count(struct hvd_sets *sets, int id, enum hvd_count what);

/* NULL when there is none; borrowed until the next change. */
const struct hvd_set *hvd_sets_find(const struct hvd_sets *sets, int id);

/* The index of a rank in the set, or -1. */
int hvd_set_index(const struct hvd_set *set, int rank);

#endif
