/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that all ranks of a process set have agreed to run together. */
#ifndef HVD_BATCH_H
#define HVD_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/message.h"
#include "collectives/request.h"

struct hvd_batch {
    struct hvd_batch *next; /* in its team's queue */
    struct hvd_batch_header header; /* text is not kept */
    struct hvd_entry **entries; /* [header.count], borrowed */
    int64_t *rows; /* [header.row_count], allgather */
    bool is_started;
    int64_t started_ns; /* hvd_clock_ns when it started */
};

/* All zero but the header. NULL without memory. */
struct hvd_batch *hvd_batch_create(const struct hvd_batch_header *header);
void hvd_batch_destroy(struct hvd_batch *batch); /* NULL is fine */

#endif
