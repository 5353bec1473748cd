/* SPDX-License-Identifier: Apache-2.0 */
/* Which process sets a member has aborted, and why: set_aborts.h. Pure. */
#ifndef HVD_ABORTED_SETS_H
#define HVD_ABORTED_SETS_H

#include <stdbool.h>

#include "collectives/agreement/message.h"

struct hvd_aborted_set {
    struct hvd_aborted_set *next;
    int set;
    bool is_decided; /* on rank 0 it may have been asked for only */
    char reason[400]; /* for users */
};

/* Zeroed: none. */
struct hvd_aborted_sets {
    struct hvd_aborted_set *first;
};

void hvd_aborted_sets_finish(struct hvd_aborted_sets *sets);

/* NULL: it is not among them. */
struct hvd_aborted_set *hvd_aborted_sets_find(const struct hvd_aborted_sets *sets,
                                              int set);

/* Adds one that is not among them, not decided yet. NULL without memory. */
struct hvd_aborted_set *hvd_aborted_sets_add(struct hvd_aborted_sets *sets, int set);

/* The set is removed: another may get its number. One that is not among them is fine. */
void hvd_aborted_sets_remove(struct hvd_aborted_sets *sets, int set);

/* Why the set has been aborted; NULL: it has not. */
const char *hvd_aborted_sets_reason(const struct hvd_aborted_sets *sets, int set);

/* Whether nothing is said or heard any more of what is of this kind in the set: of all but its removal. */
bool hvd_aborted_sets_cover(const struct hvd_aborted_sets *sets, int set,
                            enum hvd_kind kind);

#endif
