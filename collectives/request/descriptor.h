/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's description of one tensor: what it wants done with it. Ranks that agree
 * compare these.
 *
 * Threads: any; nothing here is shared. */
#ifndef HVD_DESCRIPTOR_H
#define HVD_DESCRIPTOR_H

#include <stdbool.h>

#include "collectives/hvd.h"

/* What a request is: Horovod's numbers, then hvd's own. */
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
    HVD_KIND_SET_CREATE = 18, /* by its members alone; note: the ranks, rank_list.h */
    HVD_KIND_SET_ABORT = 19, /* by one rank, in no descriptor; note: why, set_aborts.h */
    /* Of two ranks, which agree on nothing: no descriptor has these. root: the other
     * rank. */
    HVD_KIND_SEND = 32,
    HVD_KIND_RECEIVE = 33,
};

/* "ALLREDUCE" and so on. */
const char *hvd_kind_name(enum hvd_kind kind);

/* "Average" and so on: Horovod's names, as scripts write them. */
const char *hvd_op_name(enum hvd_op op);

/* Whether a descriptor may have it. */
bool hvd_kind_is_known(int64_t kind);

/* All ranks name the same root: broadcast, reduce, gather, scatter. */
bool hvd_kind_has_root(enum hvd_kind kind);

/* Each rank has rows of its own, which all are told: allgather, gather. */
bool hvd_kind_has_rows(enum hvd_kind kind);

/* What the names begin with that calls without a tensor make up. */
#define HVD_RESERVED_NAMES "hvd."
#define HVD_NUMBERED_NAMES "hvd.call." /* of those that are numbered calls */

enum {
    HVD_KIND_WORD = 24, /* bytes */
};

/* In small letters, for sentences: "allreduce". Returns word. */
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
    int32_t wire; /* the dtype on the way between ranks; 0: its own */
    enum hvd_op op;
    int32_t root;
    int32_t device; /* HVD_DEVICE_CPU; or HVD_DESCRIPTOR_GPU, whatever its number there */
    int32_t ndim;
    double prescale;
    double postscale;
    int64_t max_block; /* alltoall: rows of the largest split */
    /* its number on this rank: call_order.h; 0: it has none. Of a parsed descriptor only
     * whether it has one: 1 */
    uint64_t call;
    uint64_t group; /* the same for the tensors of one request; 0: it has only one */
    int32_t group_size;
    int64_t shape[HVD_MAX_DIMS];
    const char *name; /* of a parsed descriptor: points into the message */
    const char *note; /* likewise. Of process sets; else NULL or "" */
};

/* Do both say the same about a tensor? What may differ from rank to rank and from call to
 * call (rows of allgather and alltoall) does not count. */
bool hvd_descriptor_equal(const struct hvd_descriptor *a, const struct hvd_descriptor *b);

/* Elements times bytes, as the caller has them. */
int64_t hvd_descriptor_bytes(const struct hvd_descriptor *descriptor);

/* A heap copy that owns its texts; NULL without memory. */
struct hvd_descriptor *hvd_descriptor_copy(const struct hvd_descriptor *descriptor);
void hvd_descriptor_free(struct hvd_descriptor *descriptor); /* NULL is fine */

#endif
