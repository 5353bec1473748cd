/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the leader of a node (local rank 0) and its other local ranks, through
 * memory that they share: a ring upwards for each local rank, one ring downwards that all of
 * them read.
 *
 * Messages of one sender arrive in the order in which they were sent, all of them, once.
 *
 * Sleeping: a mailbox wakes nobody. After send and progress the caller asks take_ring which ranks
 * have something to do, and wakes those that are asleep. A rank that goes to sleep first sets its
 * flag (seq_cst), then asks has_mail once more:
 *
 *   sender:  write, then look at asleep      sleeper:  set asleep, then look at has_mail
 *
 * Threads: one at a time per mailbox. */
#ifndef HVD_MAILBOX_H
#define HVD_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_mailbox;

/* from: the sender's local rank. payload is borrowed, aligned to 8, valid in the handler only.
 * May call send, and nothing else. */
typedef void (*hvd_mailbox_handler)(void *context, int from, uint32_t type,
                                    const void *payload, size_t bytes);

/* The size of the memory that the local ranks share. */
size_t hvd_mailbox_bytes(int local_size);

/* memory: hvd_mailbox_bytes long, aligned to 128, all zero before the first local rank writes
 * to it; borrowed until destroy. The caller owns *out. */
int hvd_mailbox_create(void *memory, int local_rank, int local_size,
                       struct hvd_mailbox **out, struct hvd_error *err);

/* Forgets what waits and what has not been read. NULL is fine. */
void hvd_mailbox_destroy(struct hvd_mailbox *box);

/* Sends a message (copied, at most 64 MiB) to the leader, or from the leader to all others.
 * Never blocks: what the ring has no room for waits in private memory, and progress writes it.
 * Returns 0; HVD_ERR_NOMEM, then nothing was sent; or HVD_ERR_ARG as progress. */
int hvd_mailbox_send(struct hvd_mailbox *box, uint32_t type, const void *payload,
                     size_t bytes);

/* Writes what waits, delivers the messages that are there. Not from the handler. Returns
 * how many were delivered, HVD_ERR_NOMEM: a message stays where it is; or HVD_ERR_ARG, logged:
 * another local rank has damaged the memory, and no message passes any more. */
int hvd_mailbox_progress(struct hvd_mailbox *box, hvd_mailbox_handler handler,
                         void *context);

/* Something that was sent waits for room: destroy would lose it. */
bool hvd_mailbox_is_pending(const struct hvd_mailbox *box);

/* progress has something to do: a message to read, or room for what waits. */
bool hvd_mailbox_has_mail(const struct hvd_mailbox *box);

/* Something was written for, or room made for, this local rank since the last call. */
bool hvd_mailbox_take_ring(struct hvd_mailbox *box, int local_rank);

#endif
