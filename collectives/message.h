/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other while they agree: proposals go up the tree, batches come down.
 *
 * A proposal is one rank's description of one tensor. A batch is the root's answer: tensors
 * to be run together, or one that failed. Integers travel in host order: all ranks of a job
 * have the same byte order. */
#ifndef HVD_MESSAGE_H
#define HVD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* Types of control messages. */
enum hvd_message {
    HVD_MESSAGE_PROPOSALS = 1, /* up: proposals, one after the other */
    HVD_MESSAGE_BATCHES, /* down: batches, in the order in which all ranks run them */
    HVD_MESSAGE_ADDRESS, /* up: rank and network address of one rank */
    HVD_MESSAGE_ADDRESSES, /* down: those of all ranks */
    HVD_MESSAGE_SHUTDOWN, /* up: a rank wants to leave; down: no batch comes after this */
    HVD_MESSAGE_DRAINED, /* up: this subtree has run all its batches */
    HVD_MESSAGE_CLOSE, /* down: all have; connections may close */
};

/* Horovod's numbers for what a request is. */
enum hvd_kind {
    HVD_KIND_ALLREDUCE = 0,
    HVD_KIND_ALLGATHER = 1,
    HVD_KIND_BROADCAST = 2,
    HVD_KIND_JOIN = 3,
    HVD_KIND_ADASUM = 4,
    HVD_KIND_ALLTOALL = 5,
    HVD_KIND_BARRIER = 6,
    HVD_KIND_REDUCESCATTER = 7,
};

/* The global process set runs several rows of batches side by side; further sets have one. */
enum hvd_lane {
    HVD_LANE_QUICK, /* small batches */
    HVD_LANE_BULK, /* large ones */
    HVD_LANE_SPARE, /* what may wait behind neither */
    HVD_LANES
};

/* "ALLREDUCE" and so on. */
const char *hvd_kind_name(enum hvd_kind kind);

struct hvd_proposal {
    int32_t rank;
    int32_t set;
    enum hvd_kind kind;
    enum hvd_dtype dtype;
    enum hvd_op op;
    int32_t root;
    int32_t device;
    int32_t ndim;
    double prescale;
    double postscale;
    int64_t max_block; /* alltoall: rows of the largest split */
    int64_t shape[HVD_MAX_DIMS];
    const char *name; /* of a parsed proposal: points into the message */
};

/* A growing byte string. A failed allocation sets `failed` and makes later puts do nothing. */
struct hvd_writer {
    char *data;
    size_t bytes;
    size_t capacity;
    bool failed;
};

void hvd_writer_finish(struct hvd_writer *writer);
void hvd_put(struct hvd_writer *writer, const void *data, size_t bytes);
void hvd_put_int(struct hvd_writer *writer, int64_t value);
void hvd_put_text(struct hvd_writer *writer, const char *text);

/* Reads what a writer wrote; anything beyond the end sets `failed` and reads as 0 or "". */
struct hvd_reader {
    const char *data;
    size_t bytes;
    bool failed;
};

const void *hvd_take(struct hvd_reader *reader,
                     size_t bytes); /* borrowed, NULL on failure */
int64_t hvd_take_int(struct hvd_reader *reader);
const char *hvd_take_text(struct hvd_reader *reader); /* borrowed from the message */

void hvd_put_proposal(struct hvd_writer *writer, const struct hvd_proposal *proposal);

/* Returns 0, or HVD_ERR_ARG for a message that no writer can have made. */
int hvd_take_proposal(struct hvd_reader *reader, struct hvd_proposal *proposal);

/* One tensor of a batch. */
struct hvd_batch_tensor {
    const char *name; /* borrowed from the message */
    const void *rows; /* allgather: int64_t first dimension of each rank, not aligned */
};

/* On the wire: kind, set, lane, status, text, max_block, number of tensors, row count per
 * tensor, then each tensor's name and rows. */
struct hvd_batch_header {
    enum hvd_kind kind;
    int32_t set;
    int32_t lane; /* enum hvd_lane, of the global set; else 0 */
    int status; /* 0, or why the tensor failed on all ranks; then text says it */
    const char *text;
    int64_t max_block; /* alltoall: the largest block of any rank, in rows */
    int64_t count;
    int64_t row_count; /* ranks in the set for allgather, else 0 */
};

void hvd_put_batch_header(struct hvd_writer *writer,
                          const struct hvd_batch_header *header);
int hvd_take_batch_header(struct hvd_reader *reader, struct hvd_batch_header *header);
int hvd_take_batch_tensor(struct hvd_reader *reader,
                          const struct hvd_batch_header *header,
                          struct hvd_batch_tensor *tensor);

#endif
