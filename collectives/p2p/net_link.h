/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes to and from a rank of another node, over a channel of the net.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_NET_LINK_H
#define HVD_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/p2p/envelope.h"
#include "collectives/transport/net/net.h"

enum {
    /* the net's channel number for envelopes; teams use those from 0 on */
    HVD_NET_LINK_CHANNEL = 0x6d736773,
};

struct hvd_net_link_frame;

/* bytes: length of the envelope with its payload. */
typedef void hvd_net_link_arrived(void *context, const void *data, size_t bytes);

struct hvd_net_link {
    struct hvd_net_op inlet; /* one receive for all envelopes: it never ends */
    hvd_net_link_arrived *arrived;
    void *context;
    struct hvd_net_flow *flow; /* NULL if not open */
    struct hvd_net_link_frame *frames; /* frames that the net still holds, oldest first */
    struct hvd_net_link_frame **frames_end;
    int frame_count;
};

/* Opens the link; may call `arrived`. Must not be called from a callback of the net. */
int hvd_net_link_open(struct hvd_net_link *link, struct hvd_net *net, int rank,
                      struct hvd_error *err);

/* Call it after the net is destroyed. A zeroed link is allowed. */
void hvd_net_link_close(struct hvd_net_link *link);

/* Sends an envelope with its payload; copies both. */
int hvd_net_link_write(struct hvd_net_link *link, const struct hvd_envelope *envelope,
                       const void *payload, struct hvd_error *err);

/* Frees the frames that have been sent. Returns true if there were any. */
bool hvd_net_link_reap(struct hvd_net_link *link);

/* Whether reap would free anything. */
bool hvd_net_link_has_sent(const struct hvd_net_link *link);

/* Whether the net's window has room for another frame. */
bool hvd_net_link_has_room(const struct hvd_net_link *link);

#endif
