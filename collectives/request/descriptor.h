/* SPDX-License-Identifier: Apache-2.0 */
/* How one rank describes one tensor: type, shape and operation. Ranks compare these
 * descriptors when they agree on a tensor.
 *
 * Threads: any; nothing here is shared. */
#ifndef HVD_DESCRIPTOR_H
#define HVD_DESCRIPTOR_H

#include <stdbool.h>

#include "collectives/hvd.h"

/* The kinds of requests: Horovod's numbers, then hvd's own. */
enum hvd_kind {
    HVD_KIND_ALLREDUCE = 0,
    HVD_KIND_ALLGATHER = 1,
    HVD_KIND_BROADCAST = 2,
    HVD_KIND_JOIN = 3,
    HVD_KIND_ADASUM = 4,
    HVD_KIND_ALLTOALL = 5,
    HVD_KIND_BARRIER = 6,
    HVD_KIND_REDUCESCATTER = 7,
    HVD_KIND_REDUCE = 8,
    HVD_KIND_GATHER = 9,
    HVD_KIND_SCATTER = 10,
    HVD_KIND_SET_ADD = 16, /* note: the ranks, "0,2" */
    HVD_KIND_SET_REMOVE = 17, /* root: the set */
    /* created by its members alone; note: the ranks, see rank_list.h */
    HVD_KIND_SET_CREATE = 18,
    /* asked for by one rank; never compared between ranks. note: the reason, see
     * set_aborts.h */
    HVD_KIND_SET_ABORT = 19,
    /* Send and receive involve two ranks, without agreement: no descriptor travels. root:
     * the other rank. */
    HVD_KIND_SEND = 32,
    HVD_KIND_RECEIVE = 33,
};

/* Returns the name of a kind, such as "ALLREDUCE". */
const char *hvd_kind_name(enum hvd_kind kind);

/* Returns Horovod's name of a reduction op as scripts write it, such as "Average". */
const char *hvd_op_name(enum hvd_op op);

/* Whether descriptors from other ranks may have this kind. */
bool hvd_kind_is_known(int64_t kind);

/* Whether all ranks must name the same root: broadcast, reduce, gather, scatter. */
bool hvd_kind_has_root(enum hvd_kind kind);

/* Whether each rank has its own number of rows, which all ranks are told: allgather,
 * gather. */
bool hvd_kind_has_rows(enum hvd_kind kind);

/* The beginning of the names that hvd makes for calls without a tensor. */
#define HVD_RESERVED_NAMES "hvd."
#define HVD_NUMBERED_NAMES "hvd.call." /* for numbered calls */

enum {
    HVD_KIND_WORD = 24, /* bytes */
};

/* Writes the name of a kind in small letters, as in a sentence: "allreduce". Returns
 * word. */
const char *hvd_kind_word(enum hvd_kind kind, char word[HVD_KIND_WORD]);

enum {
    HVD_DESCRIPTOR_GPU = 0
};

/* One rank's description of one tensor. */
struct hvd_descriptor {
    int32_t rank;
    int32_t set;
    enum hvd_kind kind;
    enum hvd_dtype dtype;
    int32_t wire; /* the dtype in which the tensor travels between ranks; 0: its own */
    enum hvd_op op;
    int32_t root;
    int32_t device; /* HVD_DEVICE_CPU, or HVD_DESCRIPTOR_GPU for any GPU of the rank */
    int32_t ndim;
    double prescale;
    double postscale;
    int64_t max_block; /* alltoall: rows of the largest split */
    /* The number of the call on this rank, see call_order.h; 0: none. A parsed descriptor
     * only tells whether there is one: 1 or 0. */
    uint64_t call;
    /* equal for all tensors of one request; 0: the request has one tensor */
    uint64_t group;
    int32_t group_size;
    int64_t shape[HVD_MAX_DIMS];
    const char *name; /* in a parsed descriptor: points into the message */
    const char *note; /* as name; used for process sets, otherwise NULL or "" */
};

/* Whether two descriptors of a tensor agree. Values that may differ between ranks and
 * calls are ignored: the number of rows of allgather, gather and alltoall. */
bool hvd_descriptor_equal(const struct hvd_descriptor *a, const struct hvd_descriptor *b);

/* Returns the size of the tensor in the caller's memory. */
int64_t hvd_descriptor_bytes(const struct hvd_descriptor *descriptor);

/* Returns a heap copy that owns its texts; NULL without memory. */
struct hvd_descriptor *hvd_descriptor_copy(const struct hvd_descriptor *descriptor);
void hvd_descriptor_free(struct hvd_descriptor *descriptor); /* NULL is fine */

#endif
