/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the process sets that have been aborted, and why: set_aborts.h. Pure. */
#ifndef HVD_ABORTED_SETS_H
#define HVD_ABORTED_SETS_H

#include <stdbool.h>

#include "collectives/agreement/message.h"

enum {
    HVD_ABORT_REASON = 500 /* bytes */
};

struct hvd_aborted_set {
    struct hvd_aborted_set *next;
    int set;
    bool is_decided; /* on rank 0 it may have been asked for only */
    bool ranks_disagree; /* else a member has asked for it */
    char reason[HVD_ABORT_REASON]; /* for users */
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

/* The status with which tensors of an aborted set fail. */
int hvd_aborted_sets_status(const struct hvd_aborted_sets *sets, int set);

/* Whether the tensor fails without a message, because its set has been aborted. */
bool hvd_aborted_sets_cover(const struct hvd_aborted_sets *sets,
                            const struct hvd_proposal *proposal);

#endif
