/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on one channel to and from one peer: cut into fragments, kept in order, and
 * matched with posted receives. The sender never has more under way than the receiver can
 * store. This layer does not know the network: a function sends the fragments.
 *
 *   sender    cuts the message into fragments 0, 1, 2 ..., and sends them while
 *             cost(sent) - cost(taken) fits the window
 *   receiver  takes a fragment once it is the next in order and a receive is posted:
 *             copies it into place or passes it to the receive's `take`. Stores it until
 *             then. Acknowledges the fragments taken: in each fragment that it sends, or,
 *             once a quarter of the window is unacknowledged, in an empty one
 *
 * A message in device memory is a single fragment, an offer: only the announcement
 * travels. Its bytes stay with the sender until a receive is posted and fetches them, and
 * they use only the cost of one fragment of the window.
 *
 * A sender that waits for room has more than half a window stored at the receiver. As
 * this is taken, every quarter is acknowledged, so the sender continues no matter what
 * other channels do. */
#ifndef HVD_NET_FLOW_H
#define HVD_NET_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/net/net.h"

/* Fits, with all headers, into one receive segment of UCX over TCP (UCX_TCP_RX_SEG_SIZE,
 * 64 KiB by default), so that it is read at once: measured 1.5 to 2 times as fast as
 * larger messages. */
#define HVD_NET_FRAGMENT_BYTES 64000

/* How far a sender may run ahead: enough to fill the path between two hosts (50 us at 10
 * GB/s), and little enough to stay in a core's cache. */
#define HVD_NET_WINDOW_BYTES (512 * 1024)

/* The cost of storing a fragment in addition to its bytes; it bounds the number of small
 * fragments. */
#define HVD_NET_FRAGMENT_COST 128

/* Precedes each fragment in the network, in the byte order of the machine. */
struct hvd_net_header {
    uint64_t key; /* key of messages from `source` to this rank: net_key.h */
    uint32_t source; /* rank of the sender */
    uint32_t channel;
    /* number of this fragment on this channel, modulo 2^32; fragments without bytes are
     * not counted */
    uint32_t sequence;
    /* cost of all fragments that `source` has taken on this channel, modulo 2^32 */
    uint32_t taken;
};

/* A fragment without bytes only acknowledges. */
struct hvd_net_fragment {
    struct hvd_net_header header;
    const char *data;
    size_t bytes;
    /* the first bytes that must be authenticated: see struct hvd_net_op */
    size_t covered;
    struct hvd_net_op *op;
    struct hvd_net_flow *flow;
    void *transport; /* this member and the next two belong to the transport */
    bool is_sealed;
    unsigned char tag[16];
    struct hvd_net_fragment *next_unused;
    struct hvd_net_fragment *next_allocated;
};

/* All fragments of a net. finish frees them all, even those that the network still holds.
 * Zero-initialise it. */
struct hvd_net_pool {
    struct hvd_net_fragment *unused;
    struct hvd_net_fragment *allocated;
    int taken; /* number of fragments handed out and not returned */
};

/* Returns a fragment for the caller to fill in, or NULL if memory runs out. */
struct hvd_net_fragment *hvd_net_pool_get(struct hvd_net_pool *pool);
void hvd_net_pool_put(struct hvd_net_pool *pool, struct hvd_net_fragment *fragment);
void hvd_net_pool_finish(struct hvd_net_pool *pool);

/* The functions through which the flows of a peer use the network. */
struct hvd_net_flow_link {
    /* Returns 0 if the fragment is sent, HVD_INPROGRESS if hvd_net_flow_sent will follow,
     * or a failure. */
    int (*send)(void *peer, struct hvd_net_fragment *fragment);
    /* Takes over an offer (see hvd_net_flow_arrival). Returns 0, a failure, or
     * HVD_INPROGRESS if the network will set op->status. */
    int (*fetch)(void *peer, void *offer, struct hvd_net_op *op);
    /* Reports that the peer has failed: HVD_ERR_MISMATCH if a message and its receive
     * differ in length, else the network's status. May call hvd_net_flow_fail. */
    void (*fail)(void *peer, int status);
    void *peer;
    uint64_t key; /* key of messages to the peer */
    uint32_t source; /* this rank */
    /* where both ends start to count fragments and costs: 0; tests start just before the
     * counters wrap around */
    uint32_t first_number;
    uint32_t first_cost;
    struct hvd_net_pool *pool;
};

/* link is borrowed until destroy. */
int hvd_net_flow_create(const struct hvd_net_flow_link *link, uint32_t channel,
                        struct hvd_net_flow **out);
void hvd_net_flow_destroy(struct hvd_net_flow *flow);

/* A fragment that has arrived. If `release` is NULL, data is valid only during the call
 * of hvd_net_flow_arrived, which returns 0. Otherwise hvd_net_flow_arrived may keep data:
 * it then returns HVD_INPROGRESS, and calls release(release_context, data) later. */
struct hvd_net_flow_arrival {
    /* NULL if the message has no struct hvd_net_header */
    const struct hvd_net_header *header;
    const void *data;
    size_t bytes;
    /* data is the network's handle of bytes that are still with the sender; `release` is
     * then set */
    bool is_offer;
    void (*release)(void *context, void *data);
    void *release_context;
};
int hvd_net_flow_arrived(struct hvd_net_flow *flow,
                         const struct hvd_net_flow_arrival *arrival);

/* Whether no receive is posted. */
bool hvd_net_flow_is_unread(const struct hvd_net_flow *flow);

/* Call when a fragment for which send returned HVD_INPROGRESS has been sent, or never
 * will be. Returns 0, or a failure of the peer. */
int hvd_net_flow_sent(struct hvd_net_fragment *fragment, int status);

/* Ends all operations with `status`, now and in future. An operation whose fragments the
 * network still holds ends after hvd_net_flow_sent has been called for each of them; an
 * operation that fetches ends when the network is done with it. */
void hvd_net_flow_fail(struct hvd_net_flow *flow, int status);

#endif
