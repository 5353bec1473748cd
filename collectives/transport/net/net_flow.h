/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of one channel to and from one peer: cut into fragments, kept in order, matched with
 * what was posted, and never more under way than the receiver can be asked to keep. Knows no
 * network: fragments go out through a function.
 *
 *   sender    message ──cut──► fragment 0, 1, 2 ...   while cost(sent) - cost(taken) fits the
 *                                                      window
 *   receiver  in order, a receive is posted: copied to its place or given to its take; else kept
 *             until it is;
 *             tells the sender how much it has taken, with its own fragments, or alone once a
 *             quarter of a window has gathered
 *
 * A message of device memory is one fragment, and an offer: nothing comes but the word that it is
 * there. Once a receive is posted, its bytes are fetched into that; until then they stay with the
 * sender, and take nothing of the window but the cost of a fragment.
 *
 * A sender that waits for room has more than half a window with the receiver; as that is
 * taken, a quarter is told, so that the sender goes on whatever the other channels do. */
#ifndef HVD_NET_FLOW_H
#define HVD_NET_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/net/net.h"

/* Fits, with all headers, into one receive segment of UCX over TCP (UCX_TCP_RX_SEG_SIZE, 64 KiB
 * by default), so that it is read in one piece: measured 1.5 to 2 times as fast as larger
 * messages. */
#define HVD_NET_FRAGMENT_BYTES 64000

/* What a sender may be ahead: enough to fill the path between two hosts (50 us at 10 GB/s), few
 * enough to stay in a core's cache. */
#define HVD_NET_WINDOW_BYTES (512 * 1024)

/* What keeping a fragment costs beside its bytes; bounds the number of small ones. */
#define HVD_NET_FRAGMENT_COST 128

/* Goes in front of each fragment on the wire, in the byte order of the machine. */
struct hvd_net_header {
    uint64_t key; /* of source to this rank: net_key.h */
    uint32_t source; /* rank */
    uint32_t channel;
    uint32_t sequence; /* of fragments on this channel; counts those with bytes */
    uint32_t taken; /* cost of all that source has taken on this channel, modulo 2^32 */
};

/* Without bytes it only tells what was taken. */
struct hvd_net_fragment {
    struct hvd_net_header header;
    const char *data;
    size_t bytes;
    size_t covered; /* of the bytes, from the beginning on: hvd_net_op */
    struct hvd_net_op *op;
    struct hvd_net_flow *flow;
    void *carrier; /* the network's own, as the next two */
    bool is_sealed;
    unsigned char tag[16];
    struct hvd_net_fragment *next_unused;
    struct hvd_net_fragment *next_allocated;
};

/* Zeroed at first. The network may hold fragments until the end: finish frees all, used or
 * not. */
struct hvd_net_pool {
    struct hvd_net_fragment *unused;
    struct hvd_net_fragment *allocated;
    int taken; /* got and not put back */
};

/* NULL when memory is out. The contents are undefined but for the pool's own fields. */
struct hvd_net_fragment *hvd_net_pool_get(struct hvd_net_pool *pool);
void hvd_net_pool_put(struct hvd_net_pool *pool, struct hvd_net_fragment *fragment);
void hvd_net_pool_finish(struct hvd_net_pool *pool);

/* How the flows of a peer reach it. */
struct hvd_net_flow_link {
    /* Returns 0 when the fragment is sent, HVD_INPROGRESS when hvd_net_flow_sent will follow, or
     * a failure. */
    int (*send)(void *peer, struct hvd_net_fragment *fragment);
    /* Takes over an offer, see hvd_net_flow_arrival. Returns 0, a failure, or HVD_INPROGRESS when
     * the network will set op->status. */
    int (*fetch)(void *peer, void *offer, struct hvd_net_op *op);
    /* The peer has failed: HVD_ERR_MISMATCH for a message of another length than was expected,
     * else the network's status. May call hvd_net_flow_fail. */
    void (*fail)(void *peer, int status);
    void *peer;
    uint64_t key; /* of messages to it */
    uint32_t source; /* this rank */
    struct hvd_net_pool *pool;
};

/* link is borrowed. */
int hvd_net_flow_create(const struct hvd_net_flow_link *link, uint32_t channel,
                        struct hvd_net_flow **out);
void hvd_net_flow_destroy(struct hvd_net_flow *flow);

/* A fragment has come in; data is valid during the call only. With release, data may be kept
 * instead of copied: then returns HVD_INPROGRESS, and release(release_context, data) follows.
 * Else returns 0. */
struct hvd_net_flow_arrival {
    const struct hvd_net_header *header; /* NULL: what came has none */
    const void *data;
    size_t bytes;
    bool
        is_offer; /* data is the network's word for what the sender has; release is set */
    void (*release)(void *context, void *data);
    void *release_context;
};
int hvd_net_flow_arrived(struct hvd_net_flow *flow,
                         const struct hvd_net_flow_arrival *arrival);

/* Whether no receive is posted. */
bool hvd_net_flow_is_unread(const struct hvd_net_flow *flow);

/* A fragment that send had left HVD_INPROGRESS has gone out, or never will. Returns 0, or a
 * failure of the peer. */
int hvd_net_flow_sent(struct hvd_net_fragment *fragment, int status);

/* Ends all operations with status, from now on. Those of which the network still holds fragments end
 * when hvd_net_flow_sent has been called for them, those that are fetched when the network is done. */
void hvd_net_flow_fail(struct hvd_net_flow *flow, int status);

#endif
