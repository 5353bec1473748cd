/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the tensors in flight and the ranks that have them. Every node of the tree
 * merges its own list with those of its children, and sends the result up.
 *
 * Lists are bounded. A node that has too many tensors keeps those that come first in an
 * order that all ranks share, and says up to which point of the order its list is
 * complete. The merged list is complete up to the lowest of these points, so that no rank
 * is wrongly said to lack a tensor. The order is different each time (salt), so that each
 * tensor gets its turn.
 *
 * A message has the point up to which the list is complete, then for each tensor its age,
 * kind, set, name and ranks: the number of ranges and the ranges, or -1 and a bit for
 * each rank, whichever is shorter. */
#ifndef HVD_STALLED_H
#define HVD_STALLED_H

#include "collectives/agreement/hash_table.h"
#include "collectives/transport/control/encoding.h"

enum {
    HVD_STALLED_BYTES = 1 << 20 /* approximate limit of a message: some 10,000 tensors */
};

struct hvd_stalled_tensor {
    struct hvd_key key;
    uint64_t order;
    int64_t age_ns; /* the longest that any rank has had it in flight */
    int kind; /* enum hvd_kind, from the first rank that reports the tensor */
    uint64_t *holders; /* a bit for each rank */
    struct hvd_stalled_tensor *next; /* in the order of the first report */
};

struct hvd_stalled {
    struct hvd_hash_table by_key;
    struct hvd_stalled_tensor *first;
    struct hvd_stalled_tensor **end;
    size_t ranks; /* of the job */
    size_t bytes; /* approximate, in a message */
    uint64_t salt;
    uint64_t limit; /* the list is complete up to this point of the order */
};

void hvd_stalled_init(struct hvd_stalled *list, size_t ranks, uint64_t salt);
void hvd_stalled_finish(struct hvd_stalled *list); /* may be all zeros */

/* Adds a tensor that a rank has in flight. Returns 0 or HVD_ERR_NOMEM. */
int hvd_stalled_add(struct hvd_stalled *list, const struct hvd_key *key, int kind,
                    int rank, int64_t age_ns);

/* Merges the list of a message, made with the same salt. Returns 0, HVD_ERR_NOMEM, or
 * HVD_ERR_ARG for a malformed message. */
int hvd_stalled_merge(struct hvd_stalled *list, const void *data, size_t bytes);

/* Writes the list, and shortens it until it has about HVD_STALLED_BYTES at most. */
void hvd_stalled_put(struct hvd_stalled *list, struct hvd_writer *writer);

bool hvd_stalled_holds(const struct hvd_stalled_tensor *tensor, int rank);

/* Whether tensors have been left out. */
bool hvd_stalled_is_short(const struct hvd_stalled *list);

#endif
