/* SPDX-License-Identifier: Apache-2.0 */
/* Mail between the ranks of a node: byte rings (byte_ring.h) in shared memory, and words
 * of bits that tell which rings to read. There are two kinds:
 *
 *   control    from the leader (local rank 0) to all others, through one ring that all of
 *              them read; and from each of them to the leader, through one ring each
 *   p2p        between any two ranks, through two rings that the pair creates at its
 *              first use
 *
 * The mail of one sender arrives in the order in which it was sent, completely and once.
 *
 * For each kind, a rank has words with one bit per local rank. A rank that has written
 * mail for another rank, or has made room that the other waits for, sets its bit in the
 * other's words and then wakes the other if it sleeps (shm.h). Only mail from the leader
 * to all sets no bits, because n - 1 locked operations would cost more than the copy: the
 * readers look at the head of that ring.
 *
 * Before a rank sleeps, it announces that (hvd_shm_set_asleep) and then calls
 * hvd_mail_has_come once more:
 *
 *   sender:  write, then read asleep      sleeper:  set asleep, then look for mail
 *
 * Everything read from shared memory is checked. A rank that damages it makes progress
 * fail on other ranks; it cannot make them read or write elsewhere.
 *
 * Threads: one at a time for all functions. */
#ifndef HVD_MAIL_H
#define HVD_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_mail;
struct hvd_shm;

enum hvd_mail_kind {
    HVD_MAIL_CONTROL,
    HVD_MAIL_P2P,
};

/* Return how many bytes mail needs in the memory of a node: extra bytes, and reserved
 * bytes, which use no memory until a pair of ranks uses its part. */
size_t hvd_mail_extra_bytes(int local_size);
size_t hvd_mail_reserved_bytes(int local_size);

/* memory: the extra bytes, aligned to 128, zeroed before the first local rank writes to
 * them. memory and shm are borrowed until destroy. The caller owns *out. */
int hvd_mail_create(struct hvd_shm *shm, void *memory, struct hvd_mail **out,
                    struct hvd_error *err);

/* Drops waiting and unread mail. NULL is allowed. */
void hvd_mail_destroy(struct hvd_mail *mail);

/* Send control mail to the leader, or from the leader to all others; or p2p mail to one
 * other local rank. They copy the bytes and never block: bytes that do not fit in the
 * ring wait in private memory until progress writes them. At most HVD_RING_MAX_MESSAGE
 * bytes. Return 0; HVD_ERR_NOMEM if nothing was sent; or HVD_ERR_NET, as for progress. */
int hvd_mail_send_control(struct hvd_mail *mail, uint32_t type, const void *payload,
                          size_t bytes, struct hvd_error *err);
int hvd_mail_send_p2p(struct hvd_mail *mail, int local_rank, const void *payload,
                      size_t bytes, struct hvd_error *err);

/* Whether mail waits for room: control mail, or p2p mail to a local rank. */
bool hvd_mail_control_waits(const struct hvd_mail *mail);
bool hvd_mail_p2p_waits(const struct hvd_mail *mail, int local_rank);

/* Handles a message. from: the sender's local rank; type: 0 for p2p. payload is borrowed,
 * aligned to 8, and valid during the call. The handler may send mail. Returns 0, or a
 * failure that ends progress. */
typedef int hvd_mail_handler(void *context, int from, uint32_t type, const void *payload,
                             size_t bytes);

/* Delivers mail of one kind and writes waiting mail. Must not be called from the handler.
 * Returns how many messages were delivered or written, or a failure: the handler's,
 * HVD_ERR_NOMEM, or HVD_ERR_NET if another local rank has damaged the memory. After a
 * failure no more mail of this kind is delivered. */
int hvd_mail_progress(struct hvd_mail *mail, enum hvd_mail_kind kind,
                      hvd_mail_handler *handler, void *context, struct hvd_error *err);

/* Whether progress has something to do. Reads one or two cache lines. */
bool hvd_mail_has_come(const struct hvd_mail *mail, enum hvd_mail_kind kind);

/* Tells other ranks not to wake this one when they send p2p mail, because it will look
 * for mail soon. Meanwhile has_come ignores p2p mail. */
void hvd_mail_suppress_p2p(struct hvd_mail *mail, bool is_suppressed);

#endif
