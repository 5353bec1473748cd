/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the reports of tensors from the branches of the tree. Pure.
 *
 * A ready tensor is complete when every branch that its set needs has reported it
 * (sets.h). On ranks other than 0, it then goes up as one report of the whole subtree.
 * Equal descriptions are merged on the way, so that rank 0 gets one report of each tensor
 * from each child. */
#ifndef HVD_READY_TABLE_H
#define HVD_READY_TABLE_H

#include "collectives/set/sets.h"
#include "collectives/agreement/codec.h"
#include "collectives/agreement/response_cache.h"

struct hvd_rows {
    int64_t rank;
    int64_t rows; /* first dimension of the tensor on that rank */
};

/* One branch's report of a tensor. */
struct hvd_tensor_report {
    /* the tensor, if it was named by its id, else NULL */
    struct hvd_cached_tensor *cached;
    int rank; /* the rank that named it by its id; -1: all ranks of the branch did */
    const struct hvd_descriptor *descriptor; /* the description in full; NULL if cached */
    bool has_more; /* another description by the same branch follows */
    bool is_partial; /* a rank of the branch has joined and lacks the tensor */
    int64_t max_block;
    const struct hvd_rows *rows; /* [row_count]; may be unaligned */
    uint32_t row_count;
};

struct hvd_ready_tensor {
    struct hvd_key key; /* the name belongs to cached or to descriptions[0] */
    struct hvd_cached_tensor *cached; /* the tensor, if some branch named it by its id */
    /* a rank that named it by its id; -1: all ranks of cached_branch did */
    int cached_rank;
    int cached_branch;
    /* [described] all other descriptions, each one only once */
    struct hvd_descriptor **descriptions;
    int described;
    int described_capacity;
    unsigned char *seen; /* [branches] whether each branch has reported it */
    bool is_partial; /* set when complete: some rank has joined and lacks the tensor */
    int64_t max_block;
    struct hvd_rows *rows;
    uint32_t row_count;
    uint32_t row_capacity;
    struct hvd_ready_tensor *next; /* in a list of complete ones */
};

struct hvd_ready_table {
    const struct hvd_sets *sets; /* borrowed */
    struct hvd_hash_table open; /* tensors that are not complete */
    struct hvd_ready_tensor *complete; /* oldest first */
    struct hvd_ready_tensor **complete_end;
    struct hvd_ready_tensor *spare; /* unused structs, for later use */
};

void hvd_ready_table_init(struct hvd_ready_table *table, const struct hvd_sets *sets);
void hvd_ready_table_finish(struct hvd_ready_table *table); /* may be all zeros */

/* Adds a branch's report, which is copied. If it was the last one missing, the ready
 * tensor becomes complete. Returns HVD_ERR_ARG if the branch has reported the tensor
 * already. */
int hvd_ready_table_add(struct hvd_ready_table *table, const struct hvd_key *key,
                        int branch, const struct hvd_tensor_report *report);

/* To be called after a rank has joined: completes the tensors that lacked only its
 * report. */
void hvd_ready_table_recheck(struct hvd_ready_table *table);

/* Takes the oldest complete tensor; returns NULL if there is none. The caller gives it
 * back. */
struct hvd_ready_tensor *hvd_ready_table_take(struct hvd_ready_table *table);
void hvd_ready_table_give_back(struct hvd_ready_table *table,
                               struct hvd_ready_tensor *ready_tensor);

/* Drops the reports of an incomplete tensor. */
void hvd_ready_table_drop(struct hvd_ready_table *table, const struct hvd_key *key);

/* Drops the tensors that must fail because the set is aborted. */
void hvd_ready_table_drop_set(struct hvd_ready_table *table, const struct hvd_set *set);

/* For an error message about differing descriptions: finds a rank that named the tensor
 * by its id. */
void hvd_ready_tensor_find_rank(const struct hvd_ready_table *table,
                                struct hvd_ready_tensor *ready_tensor);

/* Returns the first description, which is that of all ranks if they agree. */
const struct hvd_descriptor *
hvd_ready_tensor_descriptor(const struct hvd_ready_tensor *ready_tensor);

/* hvd_put_ready_tensor writes the reports of a complete tensor, hvd_put_tensor_report one
 * report. A record with id 0 describes its tensor in full. */
void hvd_put_ready_tensor(struct hvd_writer *writer,
                          const struct hvd_ready_tensor *ready_tensor);
void hvd_put_tensor_report(struct hvd_writer *writer,
                           const struct hvd_tensor_report *report);

/* Parses a report, whose record the caller has already read; report borrows parts of the
 * message. If the tensor is described in full, fills *descriptor and lets report point to
 * it. Returns 0 or HVD_ERR_ARG. */
int hvd_take_tensor_report(struct hvd_reader *reader, const struct hvd_record *record,
                           struct hvd_descriptor *descriptor,
                           struct hvd_tensor_report *report);

#endif
