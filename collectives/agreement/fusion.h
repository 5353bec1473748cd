/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0: the tensors that are ready on all ranks, and how they are fused into batches.
 * Pure.
 *
 * Tensors are fused if they have the same kind, op, dtype, wire type, device, scale and
 * process set; tensors between them that do not fit are passed over. The tensors of one
 * request (a group) wait for each other. Thresholds count bytes in the tensors' own type,
 * even if a smaller type travels: this is the memory that a batch reads and writes, and
 * therefore the time for which it delays others. */
#ifndef HVD_FUSION_H
#define HVD_FUSION_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/agreement/hash_table.h"
#include "gpu_binding/base/error.h"

struct hvd_ready_tensor;
struct hvd_ready_table;

/* A batch of this size delays others for long: it goes to the BULK queue, where smaller
 * ones overtake it. A tensor of this size gains nothing by fusion and is a batch of its
 * own. */
#define HVD_BULK_BYTES ((int64_t)4 << 20)

/* Largest number of slices in an Adasum batch (tensors times ranks). Every rank keeps 16
 * bytes for each slice, so this limits them to 16 MiB, unless a single tensor has more
 * slices. */
#define HVD_ADASUM_SLICES ((int64_t)1 << 20)

struct hvd_fusion {
    /* most bytes of a batch of several tensors; 0: nothing is fused */
    int64_t threshold;
    bool groups_alone; /* the tensors of a group are fused with no others */
    int capacity; /* most tensors in the response cache; 0: none */
    int64_t cycle_ns; /* how long a tensor may wait for others to be fused with */
};

/* A tensor that all ranks have. */
struct hvd_ready {
    struct hvd_ready *next;
    struct hvd_ready_tensor *ready_tensor;
    int64_t bytes;
    int64_t ready_ns;
    int status; /* 0, or why the tensor fails on all ranks */
    bool in_group; /* belongs to a group that is the same on all ranks */
    struct hvd_error error;
};

struct hvd_fusion_queue {
    struct hvd_ready_table *table; /* borrowed */
    const struct hvd_fusion *fusion; /* borrowed; may change between calls */
    struct hvd_ready *ready; /* oldest first */
    struct hvd_ready **ready_end;
    struct hvd_ready *spare;
    struct hvd_hash_table groups;
    int64_t bytes; /* of all tensors that are ready */
    /* These two only between begin and end */
    int64_t now_ns;
    struct hvd_ready **at; /* first tensor that has not been looked at */
};

/* Tensors that are fused into one batch. */
struct hvd_fused {
    struct hvd_ready *first; /* linked by next; NULL: no batch is left */
    int64_t count;
    int64_t bytes;
};

void hvd_fusion_queue_init(struct hvd_fusion_queue *queue, struct hvd_ready_table *table,
                           const struct hvd_fusion *fusion);
void hvd_fusion_queue_finish(struct hvd_fusion_queue *queue);

/* Takes over a tensor that is complete in the ready table. */
int hvd_fusion_queue_add(struct hvd_fusion_queue *queue,
                         struct hvd_ready_tensor *ready_tensor, int64_t now_ns);

/* Whether batches must be taken now: a tensor has waited long enough for others, a batch
 * cannot become larger, or a thread waits. */
bool hvd_fusion_queue_is_due(const struct hvd_fusion_queue *queue, bool is_waited,
                             int64_t now_ns);

/* Whether a tensor of this set is ready. */
bool hvd_fusion_queue_has(const struct hvd_fusion_queue *queue, int set);

/* Removes all tensors for which `belongs` returns true, and gives them back to the ready
 * table. */
void hvd_fusion_queue_drop(struct hvd_fusion_queue *queue,
                           bool (*belongs)(const void *context,
                                           const struct hvd_ready_tensor *ready_tensor),
                           const void *context);

/* Take the batches one by one: call begin, then take until it returns no batch, then end.
 * The caller gives each batch back. Tensors that wait for the rest of their group stay in
 * the queue. end returns whether no tensor is left. */
void hvd_fusion_queue_begin(struct hvd_fusion_queue *queue, int64_t now_ns);
struct hvd_fused hvd_fusion_queue_take(struct hvd_fusion_queue *queue);
bool hvd_fusion_queue_end(struct hvd_fusion_queue *queue);

void hvd_fusion_queue_give_back(struct hvd_fusion_queue *queue, struct hvd_ready *first);

#endif
