/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the public interface: one or more tensors of this rank under way. */
#ifndef HVD_REQUEST_H
#define HVD_REQUEST_H

#include <stdatomic.h>

#include "collectives/message.h"
#include "gpu_binding/error.h"

/* One tensor under way. */
struct hvd_entry {
    struct hvd_request *request;
    struct hvd_entry *next; /* in the list of entries not yet proposed */
    struct hvd_proposal proposal; /* name owned */
    const void *input;
    void *output;
    bool is_absent; /* this rank takes part with zeros, drops what comes out, and input,
                     * output and request may be NULL: reductions of a rank that has joined */
    int32_t *splits; /* alltoall: rows to each rank */
    int32_t *received; /* alltoall, when done: rows from each rank */
    int split_count; /* alltoall: entries of splits and of received */
    void *result; /* allgather, alltoall: allocated here, taken by hvd_request_take */
    int64_t result_rows;
};

struct hvd_request {
    _Atomic int status; /* HVD_INPROGRESS until the last entry has ended */
    int remaining; /* entries; the engine's lock */
    struct hvd_error error; /* of the first entry that failed; written before status */
    int count;
    struct hvd_entry entries[];
};

/* All zero, status HVD_INPROGRESS. NULL without memory. */
struct hvd_request *hvd_request_create(int count);

/* Frees it and what its entries own. Not while it is under way. NULL is fine. */
void hvd_request_destroy(struct hvd_request *request);

/* Elements of the tensor that an entry describes. */
int64_t hvd_entry_count(const struct hvd_entry *entry);

/* Bytes of one row: the product of all dimensions but the first, times the element. */
int64_t hvd_entry_row_bytes(const struct hvd_entry *entry);

/* Ends one entry: status 0 or a failure with its text. Returns 1 when that ended the whole
 * request (its waiter must be woken), else 0. */
int hvd_entry_end(struct hvd_entry *entry, int status, const char *text);

#endif
