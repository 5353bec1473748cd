/* SPDX-License-Identifier: Apache-2.0 */
/* Framed messages over a non-blocking stream socket, TCP or unix.
 *
 *   frame: | bytes | type | carries a descriptor | 0 | payload, padded | tag |
 *
 * The first four fields have 4 bytes each, in the byte order of the machine: the ranks of
 * a job run on one kind of machine. The payload is padded to 8 bytes, so that it can be
 * read in place. A protected link has tags (seal.h): the tag authenticates the message
 * and its position in the stream.
 *
 * Writing never fails by itself: when the other end is gone, queued messages are dropped,
 * and reading reports the end after the last message that had arrived.
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
    /* the descriptor, which the receiver closes; -1: none, or this process had no room
     * for it */
    int fd;
};

/* Takes over a connected non-blocking socket and closes it in destroy. Messages of more
 * than max_bytes are refused on arrival. Returns 0, or HVD_ERR_NOMEM with the socket
 * closed. */
int hvd_link_create(int fd, size_t max_bytes, struct hvd_link **out);

/* Drops queued messages and closes the socket. NULL is allowed. */
void hvd_link_destroy(struct hvd_link *link);

/* Frees the link and returns its socket, which the caller closes with hvd_fork_close_now.
 * Call it only if nothing is pending and the other end sends nothing more by itself. */
int hvd_link_detach(struct hvd_link *link);

int hvd_link_fd(const struct hvd_link *link);
void hvd_link_allow(struct hvd_link *link, size_t max_bytes);

/* Protects the link: from now on messages have a tag, in both directions. Both ends must
 * begin between the same two messages. */
void hvd_link_protect(struct hvd_link *link,
                      const unsigned char own_key[HVD_SEAL_KEY_BYTES],
                      const unsigned char other_key[HVD_SEAL_KEY_BYTES]);

/* Sends a message: copies it and writes as much as the socket accepts. fd, if not -1, is
 * sent along, over unix sockets only; the caller closes it once nothing is pending.
 * Returns 0, HVD_ERR_NOMEM, or HVD_ERR_ARG for a message of 4 GiB. */
int hvd_link_send(struct hvd_link *link, uint32_t type, const void *payload, size_t bytes,
                  int fd);

/* Writes as much as the socket accepts. */
void hvd_link_flush(struct hvd_link *link);

/* Returns whether bytes are still queued. If so, wait until the socket is writable, then
 * flush. */
bool hvd_link_is_pending(const struct hvd_link *link);

/* Reads once from the socket. Returns 0 if bytes arrived, HVD_INPROGRESS if none did,
 * HVD_ERR_PEER if the other end is gone, or HVD_ERR_NOMEM. Take all messages out with
 * hvd_link_next before the next read. */
int hvd_link_read(struct hvd_link *link);

/* Takes out the next whole message. Returns 0, HVD_INPROGRESS if there is none, or
 * HVD_ERR_NET if the other end violates the protocol or a tag is wrong; after a wrong
 * tag, hvd_link_errno is EBADMSG. */
int hvd_link_next(struct hvd_link *link, struct hvd_link_message *message);

/* Returns the errno that ended the connection, or 0 if the other end closed it in
 * order. */
int hvd_link_errno(const struct hvd_link *link);

#endif
