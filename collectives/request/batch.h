/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: tensors that all ranks have agreed to run together. */
#ifndef HVD_BATCH_H
#define HVD_BATCH_H

#include "collectives/request/request.h"

/* The queue of the global process set that runs a batch. */
enum hvd_priority {
    HVD_PRIORITY_QUICK, /* small batches */
    HVD_PRIORITY_BULK, /* large batches; small ones overtake them */
    /* for batches that must not wait behind a replayed batch that some rank has not
     * submitted: used while a replay is in force */
    HVD_PRIORITY_SPARE,
    HVD_PRIORITIES
};

/* The values of a batch on which all ranks have agreed. */
struct hvd_batch_header {
    enum hvd_kind kind;
    int32_t set;
    enum hvd_priority priority;
    int status; /* 0, or why the batch failed on all ranks; text has the reason */
    const char *text;
    int64_t max_block; /* alltoall: the largest block of any rank, in rows */
    int64_t count; /* tensors */
    int64_t row_count; /* ranks in the set for allgather and gather, else 0 */
    int64_t value; /* join: the last rank that joined; SET_ADD: the set's number */
};

struct hvd_batch {
    struct hvd_batch *next;
    struct hvd_batch_header header; /* its text is not kept */
    /* the set with id header.set; it is not removed before the batch has ended */
    struct hvd_set *set;
    struct hvd_entry **entries; /* [header.count] */
    /* [row_count] allgather, gather: the first dimension of each rank of the set */
    int64_t *rows;
    int64_t submitted_ns; /* when this rank submitted the last of the tensors */
    int64_t started_ns; /* set if hvd_teams_watch has been called */
    /* the batch's number within its replay, from 1; 0: not replayed */
    uint64_t number;
    /* the batch's number among those on devices, from 1; 0: the batch runs on the host */
    uint64_t device_number;
};

/* Creates a batch with room for header->count tensors and header->row_count rows. Returns
 * NULL without memory. */
struct hvd_batch *hvd_batch_create(const struct hvd_batch_header *header);

/* Frees the batch and its entries of zeros; other entries belong to their requests. NULL
 * is fine. */
void hvd_batch_destroy(struct hvd_batch *batch);

#endif
