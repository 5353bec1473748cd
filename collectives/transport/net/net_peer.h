/* SPDX-License-Identifier: Apache-2.0 */
/* A peer as seen by this rank: its endpoint and its channels. */
#ifndef HVD_NET_PEER_H
#define HVD_NET_PEER_H

#include "collectives/transport/net/net_flow.h"

struct hvd_net_channel {
    uint32_t number;
    struct hvd_net_flow *flow; /* NULL in a free slot */
};

struct hvd_net_peer {
    int rank;
    int status; /* negative once the peer has failed */
    uint64_t key; /* key of messages from this peer */
    /* the transport's endpoint; NULL before it is opened and after it is closed */
    void *endpoint;
    struct hvd_net *net;
    struct hvd_net_flow_link link; /* shared by all channels; link.peer is this peer */
    struct hvd_net_channel *channels; /* hash table with open addressing */
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
};

/* Copies link, except link->peer. key: the key of messages from the peer. */
int hvd_net_peer_create(struct hvd_net *net, const struct hvd_net_flow_link *link,
                        int rank, uint64_t key, struct hvd_net_peer **out);

/* Frees the peer and its channels; the caller closes the endpoint. NULL is allowed. */
void hvd_net_peer_destroy(struct hvd_net_peer *peer);

/* Returns the flow of a channel, creating it at first use. Flows of a failed peer have
 * failed as well. Returns NULL if memory runs out. */
struct hvd_net_flow *hvd_net_peer_flow(struct hvd_net_peer *peer, uint32_t channel);

/* Ends all operations with status, now and in future. */
void hvd_net_peer_fail(struct hvd_net_peer *peer, int status);

#endif
