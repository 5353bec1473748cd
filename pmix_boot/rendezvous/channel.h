/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed link (sock/link.h) between a rank and the rendezvous service: whole messages,
 * in order, that nobody can read, write or replay without the job's key.
 *
 *   rank                               service
 *     ── header r ────────────────────►
 *     ◄─ header s ─────────────────────
 *     ── sealed: s ───────────────────►
 *     ◄─ sealed: r ────────────────────
 *     ◄─ sealed: empty ────────────────
 *
 * Each side has a stream of libsodium's crypto_secretstream, with a key for each
 * direction. Both headers are random. Each side first returns the other's header, sealed,
 * so that messages of an earlier connection cannot be replayed. The service sends r when
 * it has the rank's header: the rank notices at once if it has reached a wrong service.
 * The empty message tells the rank that the service has accepted its proof. If the
 * connection closes before that, the rank can connect again: the service does not know
 * it yet.
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

/* Takes over fd, a connected non-blocking stream socket. Returns 0, or HVD_ERR_NOMEM or
 * HVD_ERR_SYS with the socket closed. */
int hvd_channel_create(int fd, enum hvd_channel_side side,
                       const unsigned char key[HVD_CHANNEL_KEY_BYTES],
                       struct hvd_channel **out);

/* Closes the connection and frees the channel. NULL is allowed. */
void hvd_channel_destroy(struct hvd_channel *channel);

int hvd_channel_fd(const struct hvd_channel *channel);

/* Returns whether the other side has proved that it has the key and, for a rank, the
 * service has accepted this rank's proof; nothing can be sent before that. */
bool hvd_channel_is_open(const struct hvd_channel *channel);

/* Returns whether the other side's header has arrived. Any process can send one. */
bool hvd_channel_has_begun(const struct hvd_channel *channel);

/* Returns whether the connection ended by a reset, and not because the peer closed it. */
bool hvd_channel_was_reset(const struct hvd_channel *channel);

/* Returns whether data wait for room in the socket. */
bool hvd_channel_is_pending(const struct hvd_channel *channel);

/* Seals and queues a message, and writes as much as the socket accepts; never blocks.
 * Returns 0, HVD_ERR_NOMEM, or HVD_ERR_STATE if the channel is not open. */
int hvd_channel_send(struct hvd_channel *channel, uint32_t type, const void *data,
                     size_t bytes);

/* Writes what is queued and reads what has arrived; never blocks. HVD_ERR_PEER: the other
 * side has closed the connection; HVD_ERR_NET: it lacks the key or speaks another
 * protocol. Messages that arrived before can still be taken. */
int hvd_channel_progress(struct hvd_channel *channel);

/* Takes the next message: returns 0, HVD_INPROGRESS if none is complete, or HVD_ERR_NET
 * if the connection has ended. */
int hvd_channel_next(struct hvd_channel *channel, struct hvd_channel_message *message);

#endif
