/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's tensors that are ready on all ranks, and which of them travel together. Pure.
 *
 * Tensors that may travel together are fused into a batch: same kind, op, dtype, wire
 * type, device, scale and process set, looking past others that do not fit. The tensors
 * of one request (a group) wait for each other. Thresholds count the bytes that the
 * callers have, also of tensors that travel in fewer: these are what a batch reads and
 * writes, and a batch holds up others by that. */
#ifndef HVD_FUSION_H
#define HVD_FUSION_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/agreement/hash_table.h"
#include "gpu_binding/base/error.h"

struct hvd_ready_tensor;
struct hvd_ready_table;

/* A batch of this size is long enough to be overtaken: it goes by the BULK queue. A
 * tensor of this size gains nothing by fusion and is a batch of its own. */
#define HVD_BULK_BYTES ((int64_t)4 << 20)

/* Every rank keeps 16 bytes for each rank's slice of each tensor of an Adasum batch: 16
 * MiB at most, unless one tensor has more. */
#define HVD_ADASUM_SLICES ((int64_t)1 << 20)

struct hvd_fusion {
    /* bytes that a batch of several tensors may hold; 0: fuses nothing */
    int64_t threshold;
    bool groups_alone; /* a group is fused with nothing else */
    int capacity; /* tensors in the cache at the same time; 0: none */
    int64_t cycle_ns; /* how long a tensor may wait for others to travel with */
};

/* A tensor that all ranks have. */
struct hvd_ready {
    struct hvd_ready *next;
    struct hvd_ready_tensor *ready_tensor;
    int64_t bytes;
    int64_t ready_ns;
    int status; /* 0, or why the tensor fails on all ranks */
    bool in_group; /* of a group about which all ranks agree */
    struct hvd_error error;
};

struct hvd_fusion_queue {
    struct hvd_ready_table *table; /* borrowed */
    const struct hvd_fusion *fusion; /* borrowed; may change between calls */
    struct hvd_ready *ready; /* oldest first */
    struct hvd_ready **ready_end;
    struct hvd_ready *spare;
    struct hvd_hash_table groups;
    int64_t bytes; /* of all that are ready */
    /* While batches are taken */
    int64_t now_ns;
    struct hvd_ready **at; /* the first tensor that has not been looked at */
};

/* Tensors that travel together. */
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

/* Whether batches are to be taken: a tensor has waited for others long enough, or a batch
 * cannot become larger, or a thread waits. When the first becomes true by itself; -1:
 * never. */
bool hvd_fusion_queue_is_due(const struct hvd_fusion_queue *queue, bool is_waited,
                             int64_t now_ns);
int64_t hvd_fusion_queue_deadline(const struct hvd_fusion_queue *queue);

/* Whether a tensor of this set is ready. */
bool hvd_fusion_queue_has(const struct hvd_fusion_queue *queue, int set);

/* Gives back all tensors for which `belongs` is true. */
void hvd_fusion_queue_drop(struct hvd_fusion_queue *queue,
                           bool (*belongs)(const void *context,
                                           const struct hvd_ready_tensor *ready_tensor),
                           const void *context);

/* Takes batches one by one, leaving out tensors that wait for their groups; the caller
 * gives each back. The end returns whether no batch is left. */
void hvd_fusion_queue_begin(struct hvd_fusion_queue *queue, int64_t now_ns);
struct hvd_fused hvd_fusion_queue_take(struct hvd_fusion_queue *queue);
bool hvd_fusion_queue_end(struct hvd_fusion_queue *queue);

void hvd_fusion_queue_give_back(struct hvd_fusion_queue *queue, struct hvd_ready *first);

#endif
