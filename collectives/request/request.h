/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the public interface: one or more tensors of this rank in flight. */
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

/* One tensor in flight. For the agreement, a tensor on a GPU is finished once it is
 * launched: all its work is queued in the GPU's streams. The entry ends when the GPU has
 * done the work. */
struct hvd_entry {
    struct hvd_request *request; /* NULL: the entry is zeros */
    /* in the list of entries that the agreement has not taken yet */
    struct hvd_entry *next;
    struct hvd_descriptor descriptor; /* owns name and note, which may be NULL */
    struct hvd_named_tensor *tensor; /* the record of the tensor's name: tensor_table.h */
    bool keeps_tensor; /* keep `tensor` between the starts of a persistent request */
    const void *input;
    void *output;
    int32_t *splits; /* alltoall: rows to each rank */
    int32_t *received; /* alltoall, when finished: rows from each rank */
    int split_count; /* alltoall: length of splits and of received */
    /* allgather, alltoall: bytes of room in output, 0: result is allocated; send,
     * receive: bytes of the message */
    size_t output_bytes;
    bool may_allocate; /* result is allocated if it does not fit into output */
    /* Allgather, alltoall, gather: memory allocated here, which hvd_request_take hands
     * out. Send and receive of a GPU tensor: the host buffer that the data passes
     * through. */
    void *result;
    int64_t result_rows;
    /* Allocates `bytes` bytes for result, which the owner of result frees. NULL: use
     * malloc. */
    int (*allocate)(struct hvd_entry *entry, size_t bytes);
    /* Members for tensors on a GPU (collectives/gpu/): */
    int device; /* this rank's number of the GPU */
    /* the point in the caller's stream at which the input is ready */
    struct hvd_refcount *ready;
    /* the point in hvd's stream at which the output is complete; set at the launch */
    struct hvd_refcount *done;
    /* owns result, if result is from the GPU's memory pool */
    struct hvd_refcount *buffer;
    /* The entry is zeros, because this rank has joined and has no data for the tensor.
     * The zeros are added, and this rank drops the result. */
    bool is_zeros;
    bool is_cancelled; /* zeros in a batch whose result no rank wants */

    /* Members of the agreement, from submission to the end (agreement.h). */
    /* the set with id descriptor.set; it is not removed before the entry has ended */
    struct hvd_set *set;
    /* the cached tensor whose id stands for this one; NULL: it is described in full */
    struct hvd_cached_tensor *cached;
    bool is_agreed; /* in a batch that runs, or will run */
    bool is_deferred; /* its report waits, see set_changes.c */
    struct hvd_entry *older; /* the entry submitted before this one and still in flight */
    struct hvd_entry *newer;
    int64_t submitted_ns; /* hvd_clock_ns */
};

struct hvd_request {
    _Atomic int status; /* HVD_INPROGRESS until the last entry has ended */
    _Atomic bool is_asked_for; /* some thread has waited for the request or tested it */
    int remaining; /* entries that have not ended; protected by the progress lock */
    /* the error of the first entry that failed; written before status */
    struct hvd_error error;
    /* join: the last rank that joined; process sets: the set's number; receive: the
     * sender */
    int64_t value;
    int64_t tag; /* send, receive */
    /* Owners: the caller who submitted the request, and struct hvd_job from launch to
     * end. */
    _Atomic int owners;
    _Atomic bool is_launched; /* all entries have been launched or have ended */
    /* a stream of the caller waits for the end of the request */
    _Atomic bool is_on_stream;
    uint64_t job; /* the number of the job in which it was started */
    int set_size; /* the size of its process set at the start */
    bool is_persistent; /* it has been started more than once */
    bool is_optional; /* it was started without an err: see hvd.h */
    /* entries not launched yet; protected by the progress lock, like is_kept */
    int unlaunched;
    bool is_kept; /* struct hvd_job is one of the owners */
    /* the name for profilers, a static text such as "Allreduce"; NULL: none */
    const char *range_name;
    uint64_t range; /* the range that a profiler shows, see ranges.h; 0: none */
    int count;
    struct hvd_entry entries[];
};

/* Creates a zeroed request with status HVD_INPROGRESS. Returns NULL without memory. */
struct hvd_request *hvd_request_create(int count);

/* Prepares an ended request of host tensors for another start. No other thread may know
 * the request. */
void hvd_request_reset(struct hvd_request *request);

/* Gives up one ownership of the request. The last owner frees it, with the memory that
 * its entries own; it must not be in flight then. NULL is fine. */
void hvd_request_drop(struct hvd_request *request);

/* Returns entry `index` if the request has been launched or has ended successfully, else
 * NULL. */
struct hvd_entry *hvd_request_launched_entry(struct hvd_request *request, int index);

/* Creates an entry of zeros for a tensor with this descriptor, which is copied. Returns
 * NULL without memory. */
struct hvd_entry *hvd_entry_create_zeros(const struct hvd_descriptor *descriptor);
void hvd_entry_free_zeros(struct hvd_entry *entry);

enum {
    HVD_OPERATION_BYTES = 160,
};

/* Writes the operation as it appears in sentences: "allreduce 'gradient'", "send to rank
 * 1 with tag 3". Long names are cut, and names that hvd made are left out. Returns text.
 */
const char *hvd_entry_operation(const struct hvd_entry *entry,
                                char text[HVD_OPERATION_BYTES]);

/* Whether elements of this type are floating-point numbers. */
bool hvd_dtype_is_float(enum hvd_dtype dtype);

/* Returns the number of elements of the entry's tensor. */
int64_t hvd_entry_count(const struct hvd_entry *entry);

/* Returns the size of one row: the product of all dimensions but the first, times the
 * element size. */
int64_t hvd_entry_row_bytes(const struct hvd_entry *entry);

/* Rows of a tensor that belong to one rank. */
struct hvd_share {
    int64_t begin;
    int64_t rows;
};

/* Returns the share of a rank, of `size`, in a reducescatter or scatter of the entry's
 * tensor. If its rows do not divide, the first ranks have one more than the others. */
struct hvd_share hvd_entry_share(const struct hvd_entry *entry, int size, int rank);

/* Returns the host memory that a send reads or a receive writes. */
char *hvd_entry_p2p_memory(const struct hvd_entry *entry);

/* Checks that the result of an allgather or alltoall, whose rows are known, fits into the
 * memory that the caller has given for it, if any. Returns 0 or HVD_ERR_ARG. */
int hvd_entry_check_room(const struct hvd_entry *entry, struct hvd_error *err);

/* Returns the caller's memory for the result, whose rows are known. NULL: there is none,
 * or too little; memory must be allocated, even if the entry will fail for this, so that
 * the other ranks get their results. */
char *hvd_entry_find_room(struct hvd_entry *entry);

/* Marks an entry as launched. Returns 1 if it was the last of its request, else 0. From
 * then on struct hvd_job is an owner of the request, until hvd_entry_end has ended the
 * last entry. */
int hvd_entry_launch(struct hvd_entry *entry);

/* Ends one entry with status 0, or with a failure and its text. Returns 1 if this ended
 * the whole request, whose waiters must then be woken, else 0. */
int hvd_entry_end(struct hvd_entry *entry, int status, const char *text);

#endif
