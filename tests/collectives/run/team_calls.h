/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of one tensor for the teams test, which all ranks make alike, and what must
 * come out of them. */
#ifndef HVD_TEST_TEAM_CALLS_H
#define HVD_TEST_TEAM_CALLS_H

#include "collectives/request/batch.h"

/* The same on all members of the set, apart from absent. */
struct team_call {
    enum hvd_kind kind;
    enum hvd_op op; /* of reductions: Sum (int32) or Average (double) */
    int set;
    enum hvd_priority priority;
    int root; /* broadcast: a rank of the job */
    int64_t count; /* elements; allgather and alltoall: of a row */
    unsigned seed; /* of the values */
    const int *ranks; /* [size] of the set, borrowed */
    int size;
    int absent; /* the rank that takes part with nothing, or -1 */
};

/* This rank's batch, with memory of its own. */
struct hvd_batch *team_call_batch(const struct team_call *call, int rank);

/* Frees what team_call_batch made. Returns whether the batch had the right outcome. */
bool team_call_end(struct hvd_batch *batch);

/* The call that a batch was made from; borrowed. */
const struct team_call *team_call_of(const struct hvd_batch *batch);

#endif
