/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments over a TCP connection, which carries them in one direction:
 *
 *   | bytes (2) | covered (2) | magic (4) | struct hvd_net_header (24) | tag (16) |
 *   | message bytes | ...
 *
 * in the byte order of the machine. This layer knows sockets but not who is at the other
 * end. The tag is explained in net_seal.h. */
#ifndef HVD_NET_STREAM_H
#define HVD_NET_STREAM_H

#include "collectives/transport/net/net_flow.h"
#include "collectives/transport/net/net_seal.h"

/* --- outgoing --- */

/* The sending end of a connection. Zero-initialise it and set fd to -1; it queues
 * fragments until fd is a connected socket. */
struct hvd_net_outlet {
    int fd; /* non-blocking; owned by the caller */
    struct hvd_net_fragment *first; /* linked through fragment->transport */
    struct hvd_net_fragment *last;
    /* bytes of the first fragment, including its header, that are written */
    size_t written;
    struct hvd_net_seal seal;
    /* the first fragment in encrypted form; NULL if fragments are not encrypted */
    char *encrypted;
};

/* Sets the protection and the keys. Call before fd is set. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_outlet_protect(struct hvd_net_outlet *outlet,
                           enum hvd_net_protection protection,
                           const struct hvd_handshake_keys *keys);

/* Wipes the keys. The queue must have been dropped before. */
void hvd_net_outlet_finish(struct hvd_net_outlet *outlet);

typedef void hvd_net_sent(void *context, struct hvd_net_fragment *fragment, int status);

/* Writes the fragment, and queues the part that the socket does not take. Returns 0 if
 * the kernel has all of it, HVD_INPROGRESS if `sent` will follow, or HVD_ERR_PEER and
 * sets errno. */
int hvd_net_outlet_send(struct hvd_net_outlet *outlet, struct hvd_net_fragment *fragment);

/* Writes queued fragments until the socket is full. Returns how many fragments are
 * written, or HVD_ERR_PEER and sets errno. */
int hvd_net_outlet_flush(struct hvd_net_outlet *outlet, hvd_net_sent *sent,
                         void *context);

/* Empties the queue and reports each fragment as sent with this failure. */
void hvd_net_outlet_drop(struct hvd_net_outlet *outlet, int status, hvd_net_sent *sent,
                         void *context);

/* --- incoming --- */

/* Read buffers that connections share. A connection needs one only while it has received
 * part of a fragment. Zero-initialise it. */
struct hvd_net_buffers {
    struct hvd_net_buffer *unused;
};

void hvd_net_buffers_finish(struct hvd_net_buffers *buffers);

/* Zero-initialise it, then set fd and seal. */
struct hvd_net_inlet {
    int fd; /* non-blocking; owned by the caller */
    struct hvd_net_seal seal; /* wiped by finish */
    struct hvd_net_buffer *buffer; /* NULL if no partial fragment is left over */
};

/* Called when a fragment has arrived; data is valid during the call. Returns 0, or a
 * failure that ends the connection. */
typedef int hvd_net_arrived(void *context, const struct hvd_net_header *header,
                            const void *data, size_t bytes);

/* Reads for a bounded time. Returns how many fragments arrived, or a failure of
 * `arrived`, or
 *
 *   HVD_ERR_PEER    the connection has ended; errno is 0 if it ended in order and
 *                   between two fragments
 *   HVD_ERR_NET     the bytes are not those that the other end sent
 *   HVD_ERR_NOMEM   there is no buffer */
int hvd_net_inlet_read(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers,
                       hvd_net_arrived *arrived, void *context);

/* Returns the inlet's buffer to `buffers` and wipes the keys. */
void hvd_net_inlet_finish(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers);

#endif
