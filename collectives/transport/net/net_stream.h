/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments over a TCP connection, which carries them in one direction:
 *
 *   | bytes (2) | covered (2) | magic (4) | struct hvd_net_header (24) | tag (16) | bytes of the message | ...
 *
 * in the byte order of the machine. Knows sockets, not who is at the other end;
 * net_seal.h has what the tag is for. */
#ifndef HVD_NET_STREAM_H
#define HVD_NET_STREAM_H

#include "collectives/transport/net/net_flow.h"
#include "collectives/transport/net/net_seal.h"

/* --- out --- */

/* Zeroed, with fd -1, is one that is not connected yet: fragments are queued. */
struct hvd_net_outlet {
    int fd; /* does not block; the caller's */
    struct hvd_net_fragment *first; /* carrier is the next one */
    struct hvd_net_fragment *last;
    size_t written; /* of the first, with what is in front of it */
    struct hvd_net_seal seal;
    char *encrypted; /* the first as it travels; NULL: fragments travel as they are */
};

/* Before it has an fd. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_outlet_protect(struct hvd_net_outlet *outlet,
                           enum hvd_net_protection protection,
                           const struct hvd_handshake_keys *keys);

/* Forgets the keys; what is queued is dropped before. */
void hvd_net_outlet_finish(struct hvd_net_outlet *outlet);

typedef void hvd_net_sent(void *context, struct hvd_net_fragment *fragment, int status);

/* Writes the fragment, or what the socket takes of it, and queues it in the second case. Returns 0
 * when the kernel has all of it, HVD_INPROGRESS when `sent` will tell, or HVD_ERR_PEER with errno. */
int hvd_net_outlet_send(struct hvd_net_outlet *outlet, struct hvd_net_fragment *fragment);

/* Writes what is queued, as far as the socket takes it. Returns how many fragments went out, or
 * HVD_ERR_PEER with errno. */
int hvd_net_outlet_flush(struct hvd_net_outlet *outlet, hvd_net_sent *sent,
                         void *context);

/* Empties the queue: all of it is sent with this failure. */
void hvd_net_outlet_drop(struct hvd_net_outlet *outlet, int status, hvd_net_sent *sent,
                         void *context);

/* --- in --- */

/* Memory for reading, which connections share: most have no part of a fragment left over. Zeroed at
 * first. */
struct hvd_net_buffers {
    struct hvd_net_buffer *unused;
};

void hvd_net_buffers_finish(struct hvd_net_buffers *buffers);

/* Zeroed, with its fd, and its seal. */
struct hvd_net_inlet {
    int fd; /* does not block; the caller's */
    struct hvd_net_seal seal; /* finish does it, too */
    struct hvd_net_buffer *buffer; /* NULL: nothing is left over */
};

/* What came; data is valid during the call. Returns 0, or a failure of the connection. */
typedef int hvd_net_arrived(void *context, const struct hvd_net_header *header,
                            const void *data, size_t bytes);

/* Reads what is there, for a bounded time. Returns how many fragments came; HVD_ERR_PEER
 * when the connection has ended, with errno, 0 if in order and between two fragments;
 * HVD_ERR_NET when what came is not what the other end has sent; HVD_ERR_NOMEM; or what
 * arrived returned. */
int hvd_net_inlet_read(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers,
                       hvd_net_arrived *arrived, void *context);

/* Gives its buffer back, forgets its keys. */
void hvd_net_inlet_finish(struct hvd_net_inlet *inlet, struct hvd_net_buffers *buffers);

#endif
