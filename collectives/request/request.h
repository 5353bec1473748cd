/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the public interface: one or more tensors of this rank under way. */
#ifndef HVD_REQUEST_H
#define HVD_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gpu_binding/base/refcount.h"
#include "collectives/request/descriptor.h"
#include "gpu_binding/base/error.h"

struct hvd_cached_tensor;
struct hvd_named_tensor;
struct hvd_set;

/* One tensor under way. One on a GPU is over for the agreement when it is launched: all
 * that has to be done waits in the GPU's streams. It ends when the GPU has come there. */
struct hvd_entry {
    struct hvd_request *request; /* NULL: this is zeros */
    struct hvd_entry *next; /* in the list of entries that the drive has not seen yet */
    struct hvd_descriptor descriptor; /* name owned, note owned or NULL */
    struct hvd_named_tensor *tensor; /* what is known by its name: tensor_table.h */
    bool keeps_tensor; /* also between the starts of a persistent request */
    const void *input;
    void *output;
    int32_t *splits; /* alltoall: rows to each rank */
    int32_t *received; /* alltoall, when done: rows from each rank */
    int split_count; /* alltoall: entries of splits and of received */
    /* allgather, alltoall: room in output; 0: result is allocated; of a message: its
     * bytes */
    size_t output_bytes;
    /* Allgather, alltoall, gather: allocated here, taken by hvd_request_take; message of
     * a GPU tensor: the host memory that it goes through. */
    void *result;
    int64_t result_rows;
    /* Finds memory for so many bytes of result, which its owner frees; NULL: it is
     * malloc's. */
    int (*allocate)(struct hvd_entry *entry, size_t bytes);
    /* Of a tensor on a GPU (collectives/gpu/): */
    int device; /* its number here */
    /* the place in the caller's stream where the input is there */
    struct hvd_refcount *ready;
    /* the place in hvd's where the output is, once it is launched */
    struct hvd_refcount *done;
    struct hvd_refcount *buffer; /* owns result, if that is memory of the GPU's pool */
    /* zeros for a tensor that a joined rank does not have: they go in, what comes out is
     * dropped */
    bool is_zeros;
    bool is_cancelled; /* zeros, in a batch whose result no rank wants */

    /* The agreement's, from submission to the end (agreement.h). */
    struct hvd_set *set; /* of descriptor.set; not removed before the entry has ended */
    struct hvd_cached_tensor *cached; /* by whose id it goes; NULL: by its description */
    bool is_agreed; /* in a batch that runs */
    bool is_deferred; /* not reported yet: see set_changes.c */
    struct hvd_entry *older; /* submitted before, under way too */
    struct hvd_entry *newer;
    int64_t submitted_ns; /* hvd_clock_ns */
};

struct hvd_request {
    _Atomic int status; /* HVD_INPROGRESS until the last entry has ended */
    _Atomic bool is_asked_for; /* some thread has waited for it or tested it */
    int remaining; /* entries; the progress lock */
    struct hvd_error error; /* of the first entry that failed; written before status */
    /* Join: the last rank; process sets: the number of the set; receive: the rank that
     * sent. */
    int64_t value;
    int64_t tag; /* of a message */
    /* who submitted it, and this rank's struct hvd_job while it is launched */
    _Atomic int owners;
    _Atomic bool is_launched; /* all entries are, or have ended */
    _Atomic bool is_on_stream; /* a stream of the caller's waits for its end */
    uint64_t job; /* the number of the job in which it was started */
    int set_size; /* ranks of its process set then */
    bool is_persistent; /* it has been started more than once */
    int unlaunched; /* entries; the progress lock; so is_kept */
    bool is_kept; /* struct hvd_job is one of the owners */
    const char *range_name; /* of its range, static: "Allreduce"; NULL: it has none */
    uint64_t range; /* of a profiler, see ranges.h; 0: none */
    int count;
    struct hvd_entry entries[];
};

/* All zero, status HVD_INPROGRESS. NULL without memory. */
struct hvd_request *hvd_request_create(int count);

/* A request of host tensors that has ended is as before its start, so that another one
 * may follow. Its caller is the only thread that knows it. */
void hvd_request_reset(struct hvd_request *request);

/* Frees it and what its entries own. Not while it is under way. NULL is fine. */
void hvd_request_destroy(struct hvd_request *request);

/* One owner less; the last one destroys it. */
void hvd_request_drop(struct hvd_request *request);

/* Entry `index` when the request is launched or has ended well, else NULL. */
struct hvd_entry *hvd_request_launched_entry(struct hvd_request *request, int index);

/* An entry of zeros for a tensor of this description (copied). NULL without memory. */
struct hvd_entry *hvd_entry_create_zeros(const struct hvd_descriptor *descriptor);
void hvd_entry_free_zeros(struct hvd_entry *entry);

enum {
    HVD_OPERATION_BYTES = 160,
};

/* "allreduce 'gradient'", "send to rank 1 with tag 3", for sentences: a long name is cut,
 * and one that hvd made itself is left out. Returns text. */
const char *hvd_entry_operation(const struct hvd_entry *entry,
                                char text[HVD_OPERATION_BYTES]);

/* Whether its elements are floating-point numbers. */
bool hvd_dtype_is_float(enum hvd_dtype dtype);

/* Elements of the tensor that an entry describes. */
int64_t hvd_entry_count(const struct hvd_entry *entry);

/* Bytes of one row: the product of all dimensions but the first, times the element. */
int64_t hvd_entry_row_bytes(const struct hvd_entry *entry);

/* The host memory of a send or receive. */
char *hvd_entry_p2p_memory(const struct hvd_entry *entry);

/* The result of an allgather or alltoall, whose rows are known, fits into the memory that
 * the caller gave for it, if any. Returns 0 or HVD_ERR_ARG. */
int hvd_entry_check_room(const struct hvd_entry *entry, struct hvd_error *err);

/* An entry is launched. Returns 1 when that was the request's last one, else 0; from then
 * on struct hvd_job is an owner, until hvd_entry_end has ended the whole request. */
int hvd_entry_launch(struct hvd_entry *entry);

/* Ends one entry: status 0 or a failure with its text. Returns 1 when that ended the
 * whole request (its waiter must be woken), else 0. */
int hvd_entry_end(struct hvd_entry *entry, int status, const char *text);

#endif
