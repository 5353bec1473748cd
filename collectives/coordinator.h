/* SPDX-License-Identifier: Apache-2.0 */
/* The root's book: which ranks have proposed which tensor, and what all ranks run next.
 *
 * Pure bookkeeping, no network: proposals go in, batches come out. A tensor is ready when
 * every rank has proposed it; ready tensors that may travel together are fused into a batch.
 * One thread at a time. */
#ifndef HVD_COORDINATOR_H
#define HVD_COORDINATOR_H

#include <stdbool.h>

#include "collectives/message.h"
#include "gpu_binding/error.h"

struct hvd_coordinator;

/* size: ranks; fusion_threshold: bytes that a batch of several tensors may hold, 0 to fuse
 * nothing. The caller owns *out. */
int hvd_coordinator_create(int size, int64_t fusion_threshold,
                           struct hvd_coordinator **out, struct hvd_error *err);
void hvd_coordinator_destroy(struct hvd_coordinator *coordinator); /* NULL is fine */

/* Takes one proposal (copied). A rank that proposes a name twice before it was answered is
 * HVD_ERR_ARG: its own library should have refused. */
int hvd_coordinator_add(struct hvd_coordinator *coordinator,
                        const struct hvd_proposal *proposal, struct hvd_error *err);

/* Appends the batches of all ready tensors to writer, in the order in which they became
 * ready, and forgets them. Returns how many batches. */
int hvd_coordinator_answer(struct hvd_coordinator *coordinator,
                           struct hvd_writer *writer);

#endif
