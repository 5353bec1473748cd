/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's decisions: complete readiness records go in, batches come out. Pure.
 *
 * Tensors that may travel together are fused into a batch: same kind, op, dtype, wire type,
 * device, scale and process set, looking past others that do not fit. The tensors of one request
 * (a group) wait for each other. Thresholds count the bytes that the callers have, also of tensors
 * that travel in fewer: these are what a batch reads and writes, and a batch holds up others by
 * that. One thread at a time. */
#ifndef HVD_COORDINATOR_H
#define HVD_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_coordinator;
struct hvd_decision_writers;
struct hvd_error;
struct hvd_readiness;
struct hvd_readiness_table;
struct hvd_tensor_cache;

/* A batch of this size is long enough to be overtaken: it goes by the BULK lane. A tensor of this
 * size gains nothing by fusion and is a batch of its own. */
#define HVD_BULK_BYTES ((int64_t)4 << 20)

/* Every rank keeps 16 bytes for each rank's slice of each tensor of an Adasum batch: 16 MiB at most,
 * unless one tensor has more. */
#define HVD_ADASUM_SLICES ((int64_t)1 << 20)

struct hvd_fusion {
    int64_t
        threshold; /* bytes that a batch of several tensors may hold; 0: fuses nothing */
    bool groups_alone; /* a group is fused with nothing else */
    int capacity; /* tensors in the cache at the same time; 0: none */
    int64_t cycle_ns; /* how long a tensor may wait for others to travel with */
};

/* All are borrowed; what fusion says may change between calls. */
int hvd_coordinator_create(struct hvd_readiness_table *readiness_table,
                           struct hvd_tensor_cache *cache,
                           const struct hvd_fusion *fusion, struct hvd_coordinator **out,
                           struct hvd_error *err);
void hvd_coordinator_destroy(struct hvd_coordinator *coordinator); /* NULL is fine */

/* Takes a complete readiness record over: its tensor is ready. */
int hvd_coordinator_add(struct hvd_coordinator *coordinator,
                        struct hvd_readiness *readiness, int64_t now_ns);

/* When the first of the tensors that are ready now got ready; -1 when there is none. */
int64_t hvd_coordinator_oldest(const struct hvd_coordinator *coordinator);
int64_t hvd_coordinator_bytes(const struct hvd_coordinator *coordinator);

/* Appends the decisions about all tensors that are ready, and forgets them. only_spare: the other lanes
 * belong to a replay. Returns false when the message is long enough before they are all there;
 * then it is to be sent, carried out here, and more to be asked for. */
bool hvd_coordinator_answer(struct hvd_coordinator *coordinator, bool only_spare,
                            int64_t now_ns, struct hvd_decision_writers *writers);

/* Whether a tensor of this set is ready and not decided upon. */
bool hvd_coordinator_has(const struct hvd_coordinator *coordinator, int set);

/* Gives tensors back that were ready and end with the set. */
void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator, int set);

/* Gives tensors back that were ready but are part of a replay now, as whatever they were described. */
void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator);

#endif
