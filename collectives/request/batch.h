/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: tensors that all ranks have agreed to run together. */
#ifndef HVD_BATCH_H
#define HVD_BATCH_H

#include "collectives/request/request.h"

/* Which team of the global process set runs a batch. */
enum hvd_priority {
    HVD_PRIORITY_QUICK, /* small batches */
    HVD_PRIORITY_BULK, /* large ones, which small ones overtake */
    /* what must not wait behind a replayed batch that some rank lacks */
    HVD_PRIORITY_SPARE,
    HVD_PRIORITIES
};

/* What is agreed about a batch as a whole. */
struct hvd_batch_header {
    enum hvd_kind kind;
    int32_t set;
    enum hvd_priority priority;
    int status; /* 0, or why the batch failed on all ranks; then text says it */
    const char *text;
    int64_t max_block; /* alltoall: the largest block of any rank, in rows */
    int64_t count; /* tensors */
    int64_t row_count; /* ranks in the set for allgather and gather, else 0 */
    int64_t value; /* join: the last rank that joined; SET_ADD: the set's number */
};

struct hvd_batch {
    struct hvd_batch *next;
    struct hvd_batch_header header; /* text is not kept */
    struct hvd_set *set; /* of header.set; not removed before the batch has ended */
    struct hvd_entry **entries; /* [header.count] */
    int64_t *rows; /* [row_count], allgather: first dimension of each rank of the set */
    int64_t submitted_ns; /* when this rank submitted the last of its tensors */
    int64_t started_ns;
    uint64_t number; /* of a replayed batch, in its replay; from 1, 0: not replayed */
    /* of one on a device, among all of these; from 1, 0: on the host */
    uint64_t device_number;
};

/* Room for count tensors and row_count rows. NULL without memory. */
struct hvd_batch *hvd_batch_create(const struct hvd_batch_header *header);

/* Frees it, and those of its entries that are zeros; the others belong to their requests.
 * NULL is fine. */
void hvd_batch_destroy(struct hvd_batch *batch);

/* Its tensors are on devices; of all ranks, or of none. */
bool hvd_batch_is_on_device(const struct hvd_batch *batch);

#endif
