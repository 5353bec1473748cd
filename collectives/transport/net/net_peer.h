/* SPDX-License-Identifier: Apache-2.0 */
/* One peer as this rank sees it: its endpoint and its channels. */
#ifndef HVD_NET_PEER_H
#define HVD_NET_PEER_H

#include "collectives/transport/net/net_flow.h"

struct hvd_net_channel {
    uint32_t number;
    struct hvd_net_flow *flow; /* NULL: a free place */
};

struct hvd_net_peer {
    int rank;
    int status; /* negative once it has failed */
    uint64_t key; /* of messages from it */
    void *endpoint; /* the carrier's; NULL when there is none (yet, or any more) */
    struct hvd_net *net;
    struct hvd_net_flow_link link; /* what the channels use; link.peer is this peer */
    struct hvd_net_channel *channels; /* hash table, open addressing */
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
};

/* link is copied, but for link->peer. key: of messages from it. */
int hvd_net_peer_create(struct hvd_net *net, const struct hvd_net_flow_link *link,
                        int rank, uint64_t key, struct hvd_net_peer **out);

/* Frees the channels too; the endpoint is the caller's. NULL is fine. */
void hvd_net_peer_destroy(struct hvd_net_peer *peer);

/* The flow of a channel, new at first use; of a peer that has failed it has failed too. NULL when
 * memory is out. */
struct hvd_net_flow *hvd_net_peer_flow(struct hvd_net_peer *peer, uint32_t channel);

/* Ends all operations with status, from now on. */
void hvd_net_peer_fail(struct hvd_net_peer *peer, int status);

#endif
