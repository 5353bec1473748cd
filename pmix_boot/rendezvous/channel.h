/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed link (wire/link.h) between a rank and the rendezvous service: whole messages,
 * in order, that nobody without the job's key can read, write or play again.
 *
 *   rank                                         service
 *     ── header r ──────────────────────────────►      each side's stream of libsodium's
 *     ◄─ header s ───────────────────────────────      crypto_secretstream, with a key of its
 *     ── sealed: s ─────────────────────────────►      direction; the other's header, random,
 *     ◄─ sealed: r ──────────────────────────────      comes back first: no replay
 *
 * Threads: one call at a time. */
#ifndef HVD_CHANNEL_H
#define HVD_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

#define HVD_CHANNEL_KEY_BYTES 32

struct hvd_channel;

enum hvd_channel_side {
    HVD_CHANNEL_RANK,
    HVD_CHANNEL_SERVICE,
};

struct hvd_channel_message {
    uint32_t type;
    const void *data; /* borrowed until the next call; aligned to 8 */
    size_t bytes;
};

/* Takes over fd, a connected stream socket that does not block. Returns 0, or HVD_ERR_NOMEM or
 * HVD_ERR_SYS with the socket closed. */
int hvd_channel_create(int fd, enum hvd_channel_side side,
                       const unsigned char key[HVD_CHANNEL_KEY_BYTES],
                       struct hvd_channel **out);

/* Closes. NULL is fine. */
void hvd_channel_destroy(struct hvd_channel *channel);

int hvd_channel_fd(const struct hvd_channel *channel);

/* Whether the other side has proven that it has the key; before, nothing can be sent. */
bool hvd_channel_is_open(const struct hvd_channel *channel);

/* Whether the other side's header has come; anybody can send one. */
bool hvd_channel_has_begun(const struct hvd_channel *channel);

/* Whether something waits for room in the socket. */
bool hvd_channel_is_pending(const struct hvd_channel *channel);

/* Seals, queues and writes as far as the socket takes it; never blocks. Returns 0,
 * HVD_ERR_NOMEM, or HVD_ERR_STATE when the channel is not open. */
int hvd_channel_send(struct hvd_channel *channel, uint32_t type, const void *data,
                     size_t bytes);

/* Writes what is queued and reads what is there; never blocks. HVD_ERR_PEER: the other side has
 * closed the connection; HVD_ERR_NET: it lacks the key, or speaks another language. What came
 * before can still be taken. */
int hvd_channel_progress(struct hvd_channel *channel);

/* The next message: 0, HVD_INPROGRESS when none is whole, or HVD_ERR_NET when
 * the connection has ended. */
int hvd_channel_next(struct hvd_channel *channel, struct hvd_channel_message *message);

#endif
