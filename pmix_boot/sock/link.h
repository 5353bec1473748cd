/* SPDX-License-Identifier: Apache-2.0 */
/* Framed messages over a non-blocking stream socket, TCP or unix.
 *
 *   on the wire: | bytes (4) | type (4) | carries a descriptor (4) | 0 (4) | payload, padded | tag |
 *
 * The tag (seal.h) is there once the link is protected: it authenticates the message, and
 * its place among the others.
 *
 * in the byte order of the machine: the ranks of a job run on one kind of machine. Frames
 * are padded to 8 bytes, so that a payload can be read in place.
 *
 * Writing never fails by itself: when the other end is gone, what is queued is dropped,
 * and reading reports it after the last message that had arrived.
 *
 * Threads: one at a time per link. */
#ifndef HVD_LINK_H
#define HVD_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/sock/seal.h"

struct hvd_link;

struct hvd_link_message {
    uint32_t type;
    const void *payload; /* aligned to 8; valid until the next hvd_link_read */
    size_t bytes;
    bool carries_fd; /* a descriptor was sent along */
    /* it, now the receiver's to close; or -1, also where this process has no room */
    int fd;
};

/* Takes over a connected non-blocking socket and closes it in destroy. Messages of more
 * than max_bytes are refused on arrival. Returns 0, or HVD_ERR_NOMEM with the socket
 * closed. */
int hvd_link_create(int fd, size_t max_bytes, struct hvd_link **out);

/* Drops what is queued and closes. NULL is fine. */
void hvd_link_destroy(struct hvd_link *link);

/* Frees the link and hands its socket over: hvd_fork_close_now is the caller's then. Only
 * when nothing is pending, and when the other end sends nothing more by itself. */
int hvd_link_detach(struct hvd_link *link);

int hvd_link_fd(const struct hvd_link *link);
void hvd_link_allow(struct hvd_link *link, size_t max_bytes);

/* From now on messages have a tag, both ways: each end begins between the same two
 * messages. */
void hvd_link_protect(struct hvd_link *link,
                      const unsigned char own_key[HVD_SEAL_KEY_BYTES],
                      const unsigned char other_key[HVD_SEAL_KEY_BYTES]);

/* Queues a message (copied) and writes what the socket takes. fd, if not -1, goes along:
 * unix sockets only; the caller keeps it, and keeps it open until nothing is pending.
 * Returns 0, or HVD_ERR_NOMEM. */
int hvd_link_send(struct hvd_link *link, uint32_t type, const void *payload, size_t bytes,
                  int fd);

/* Writes what the socket takes. */
void hvd_link_flush(struct hvd_link *link);

/* Something is still queued: wait until the socket is writable, then flush. */
bool hvd_link_is_pending(const struct hvd_link *link);

/* Reads what is there, once. Returns 0 when something came, HVD_INPROGRESS when there was
 * nothing, HVD_ERR_PEER when the other end is gone, HVD_ERR_NOMEM. Take all messages out
 * before the next read. */
int hvd_link_read(struct hvd_link *link);

/* The next whole message: 0; HVD_INPROGRESS when there is none; HVD_ERR_NET when the
 * other end does not speak this language, or a tag is wrong: then hvd_link_errno is
 * EBADMSG. */
int hvd_link_next(struct hvd_link *link, struct hvd_link_message *message);

/* The errno that ended the connection; 0 when the other end closed it in order. */
int hvd_link_errno(const struct hvd_link *link);

#endif
