/* SPDX-License-Identifier: Apache-2.0 */
/* Which branches of the tree have reported which tensor, and as what. Pure.
 *
 * A ready tensor is complete when every branch that its set needs has reported (sets.h).
 * Below rank 0 it then goes up as one report of the whole subtree; equal descriptions
 * have become one on the way, so that rank 0 hears of each tensor once from each
 * child. */
#ifndef HVD_READY_TABLE_H
#define HVD_READY_TABLE_H

#include "collectives/set/sets.h"
#include "collectives/agreement/codec.h"
#include "collectives/agreement/response_cache.h"

struct hvd_rows {
    int64_t rank;
    int64_t rows; /* first dimension of the rank's tensor */
};

/* What one branch says of one tensor. */
struct hvd_tensor_report {
    struct hvd_cached_tensor *cached; /* it was named by its id; else NULL */
    int rank; /* that has named it so; -1: all of the branch */
    const struct hvd_descriptor *descriptor; /* described in full; NULL if cached */
    bool has_more; /* another description by the same branch follows */
    bool is_partial; /* a rank of the branch lacks it, because it has joined */
    int64_t max_block;
    const struct hvd_rows *rows; /* [row_count]; may be unaligned */
    uint32_t row_count;
};

struct hvd_ready_tensor {
    struct hvd_key key; /* name owned by cached or descriptions[0] */
    struct hvd_cached_tensor *cached; /* some branch named it by this id */
    int cached_rank; /* a rank that has; -1: all of cached_branch */
    int cached_branch;
    struct hvd_descriptor **descriptions; /* [described] the others, all different */
    int described;
    int described_capacity;
    unsigned char *seen; /* [branches] */
    bool is_partial; /* when complete: some rank lacks it, because it has joined */
    int64_t max_block;
    struct hvd_rows *rows;
    uint32_t row_count;
    uint32_t row_capacity;
    struct hvd_ready_tensor *next; /* in a list of complete ones */
};

struct hvd_ready_table {
    const struct hvd_sets *sets; /* borrowed */
    struct hvd_hash_table open; /* not complete */
    struct hvd_ready_tensor *complete; /* oldest first */
    struct hvd_ready_tensor **complete_end;
    struct hvd_ready_tensor *spare; /* to use again */
};

void hvd_ready_table_init(struct hvd_ready_table *table, const struct hvd_sets *sets);
void hvd_ready_table_finish(struct hvd_ready_table *table); /* zeroed is fine */

/* Takes a report (copied); completes the ready tensor when it was the last one. A branch
 * that reports a tensor twice is HVD_ERR_ARG. */
int hvd_ready_table_add(struct hvd_ready_table *table, const struct hvd_key *key,
                        int branch, const struct hvd_tensor_report *report);

/* Completes what is complete now, after a rank has joined. */
void hvd_ready_table_recheck(struct hvd_ready_table *table);

/* Takes the oldest complete ready tensor; NULL when there is none. The caller gives it
 * back. */
struct hvd_ready_tensor *hvd_ready_table_take(struct hvd_ready_table *table);
void hvd_ready_table_give_back(struct hvd_ready_table *table,
                               struct hvd_ready_tensor *ready_tensor);

/* Drops what has been said of a tensor, of which from now on nobody reports. */
void hvd_ready_table_drop(struct hvd_ready_table *table, const struct hvd_key *key);

/* The same of all tensors that end with the set. */
void hvd_ready_table_drop_set(struct hvd_ready_table *table, const struct hvd_set *set);

/* Finds cached_rank, where descriptions differ: it is to be named. */
void hvd_ready_tensor_find_rank(const struct hvd_ready_table *table,
                                struct hvd_ready_tensor *ready_tensor);

/* The first description: what the tensor is if all agree. */
const struct hvd_descriptor *
hvd_ready_tensor_descriptor(const struct hvd_ready_tensor *ready_tensor);

/* On the wire. The record has been taken already; id 0: described in full. */
void hvd_put_ready_tensor(struct hvd_writer *writer,
                          const struct hvd_ready_tensor *ready_tensor);
void hvd_put_tensor_report(struct hvd_writer *writer,
                           const struct hvd_tensor_report *report);

/* The parts of the message that report points into stay borrowed; *descriptor is filled
 * and pointed to when the tensor is described in full. Returns 0 or HVD_ERR_ARG. */
int hvd_take_tensor_report(struct hvd_reader *reader, const struct hvd_record *record,
                           struct hvd_descriptor *descriptor,
                           struct hvd_tensor_report *report);

#endif
