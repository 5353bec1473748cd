/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of one tensor for the teams test, which all ranks create alike, and checks of
 * their results. */
#ifndef HVD_TEST_TEAM_CALLS_H
#define HVD_TEST_TEAM_CALLS_H

#include "collectives/request/batch.h"

/* A call, which has the same values on all members of the set. */
struct team_call {
    enum hvd_kind kind;
    enum hvd_op op; /* op of a reduction: Sum (int32) or Average (double) */
    int set;
    enum hvd_priority priority;
    int root; /* rank of the broadcast's root in the job */
    /* number of elements; for allgather and alltoall, of the elements in a row */
    int64_t count;
    unsigned seed; /* seed of the tensor's values */
    const int *ranks; /* [size]: ranks of the set, borrowed */
    int size;
    int absent; /* the rank that takes part with zeros, or -1 */
};

/* Returns this rank's batch, with memory of its own. */
struct hvd_batch *team_call_batch(const struct team_call *call, int rank);

/* Frees a batch of team_call_batch. Returns whether it had the right result. */
bool team_call_end(struct hvd_batch *batch);

/* Returns the call from which a batch was made; borrowed. */
const struct team_call *team_call_of(const struct hvd_batch *batch);

#endif
