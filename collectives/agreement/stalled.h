/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors under way on some ranks, and which ranks have each: lists that every node of
 * the tree makes of its own and of its children's, and sends up as one.
 *
 * A list is bounded, whatever the ranks hold: a node that has too many keeps those that
 * come first in an order that all ranks share, and says up to where its list is complete.
 * What is left after all merging is complete: nobody is said to lack a tensor that he
 * holds. The order is drawn anew each time (salt), so that each tensor gets its turn.
 *
 * On the wire: where the list ends, then of each tensor its age, kind, set, name and
 * ranks: the number of ranges and these, or -1 and a bit for each rank, whichever is
 * shorter. */
#ifndef HVD_STALLED_H
#define HVD_STALLED_H

#include "collectives/agreement/hash_table.h"
#include "collectives/transport/control/encoding.h"

enum {
    HVD_STALLED_BYTES = 1 << 20 /* of a message, about: some 10,000 tensors */
};

struct hvd_stalled_tensor {
    struct hvd_key key;
    uint64_t order;
    int64_t age_ns; /* the most of any rank */
    int kind; /* enum hvd_kind, as the first rank to mention it has it */
    uint64_t *holders; /* a bit for each rank */
    struct hvd_stalled_tensor *next; /* in the order of first mention */
};

struct hvd_stalled {
    struct hvd_hash_table by_key;
    struct hvd_stalled_tensor *first;
    struct hvd_stalled_tensor **end;
    size_t ranks; /* of the job */
    size_t bytes; /* about, on the wire */
    uint64_t salt;
    uint64_t limit; /* complete up to this place of the order */
};

void hvd_stalled_init(struct hvd_stalled *list, size_t ranks, uint64_t salt);
void hvd_stalled_finish(struct hvd_stalled *list); /* zeroed is fine */

/* This rank has a tensor under way. Returns 0 or HVD_ERR_NOMEM. */
int hvd_stalled_add(struct hvd_stalled *list, const struct hvd_key *key, int kind,
                    int rank, int64_t age_ns);

/* Adds the list of a message, made with the same salt. Returns 0, HVD_ERR_NOMEM, or
 * HVD_ERR_ARG for a message that no writer can have made. */
int hvd_stalled_merge(struct hvd_stalled *list, const void *data, size_t bytes);

/* Writes the list; it is shortened until it is within HVD_STALLED_BYTES, about. */
void hvd_stalled_put(struct hvd_stalled *list, struct hvd_writer *writer);

bool hvd_stalled_holds(const struct hvd_stalled_tensor *tensor, int rank);

/* Whether tensors have been left out. */
bool hvd_stalled_is_short(const struct hvd_stalled *list);

#endif
