/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's decisions: complete readiness records go in, batches come out. Pure. One
 * thread at a time. */
#ifndef HVD_COORDINATOR_H
#define HVD_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/agreement/fusion.h"

struct hvd_coordinator;
struct hvd_decision_writers;
struct hvd_tensor_cache;

/* All are borrowed; what fusion says may change between calls. */
int hvd_coordinator_create(struct hvd_readiness_table *readiness_table,
                           struct hvd_tensor_cache *cache,
                           const struct hvd_fusion *fusion, struct hvd_coordinator **out,
                           struct hvd_error *err);
void hvd_coordinator_destroy(struct hvd_coordinator *coordinator); /* NULL is fine */

/* Takes a complete readiness record over: its tensor is ready. */
int hvd_coordinator_add(struct hvd_coordinator *coordinator,
                        struct hvd_readiness *readiness, int64_t now_ns);

/* When to ask for an answer, as in fusion.h. */
bool hvd_coordinator_is_due(const struct hvd_coordinator *coordinator, bool is_waited,
                            int64_t now_ns);
int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator);

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
