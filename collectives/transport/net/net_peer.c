/* SPDX-License-Identifier: Apache-2.0 */
/* A peer as seen by this rank: its endpoint and its channels. */
#include "collectives/transport/net/net_peer.h"

#include <stdlib.h>

/* Most ranks use one or two channels to a peer. */
#define FIRST_CAPACITY 4

int hvd_net_peer_create(struct hvd_net *net, const struct hvd_net_flow_link *link,
                        int rank, uint64_t key, struct hvd_net_peer **out)
{
    struct hvd_net_peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL) {
        return HVD_ERR_NOMEM;
    }
    peer->rank = rank;
    peer->key = key;
    peer->net = net;
    peer->link = *link;
    peer->link.peer = peer;
    *out = peer;
    return 0;
}

void hvd_net_peer_destroy(struct hvd_net_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    for (uint32_t i = 0; i < peer->capacity; i++) {
        hvd_net_flow_destroy(peer->channels[i].flow);
    }
    free(peer->channels);
    free(peer);
}

/* Returns the slot of this channel, or the free slot where it belongs. */
static struct hvd_net_channel *slot_of(struct hvd_net_channel *channels,
                                       uint32_t capacity, uint32_t number)
{
    /* multiplicative hash: channel numbers may be consecutive or share their low bits */
    uint32_t i = (number * 0x9e3779b1u >> 16) & (capacity - 1);

    while (channels[i].flow != NULL && channels[i].number != number) {
        i = (i + 1) & (capacity - 1);
    }
    return &channels[i];
}

static int grow_channels(struct hvd_net_peer *peer)
{
    uint32_t capacity = peer->capacity == 0 ? FIRST_CAPACITY : 2 * peer->capacity;
    struct hvd_net_channel *channels = calloc(capacity, sizeof(*channels));

    if (channels == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < peer->capacity; i++) {
        if (peer->channels[i].flow != NULL) {
            *slot_of(channels, capacity, peer->channels[i].number) = peer->channels[i];
        }
    }
    free(peer->channels);
    peer->channels = channels;
    peer->capacity = capacity;
    return 0;
}

static struct hvd_net_flow *add_flow(struct hvd_net_peer *peer, uint32_t channel)
{
    struct hvd_net_flow *flow = NULL;

    if (4 * (peer->count + 1) > 3 * peer->capacity && grow_channels(peer) != 0) {
        return NULL;
    }
    if (hvd_net_flow_create(&peer->link, channel, &flow) != 0) {
        return NULL;
    }
    if (peer->status != 0) {
        hvd_net_flow_fail(flow, peer->status);
    }
    *slot_of(peer->channels, peer->capacity, channel) =
        (struct hvd_net_channel){channel, flow};
    peer->count++;
    return flow;
}

struct hvd_net_flow *hvd_net_peer_flow(struct hvd_net_peer *peer, uint32_t channel)
{
    struct hvd_net_flow *flow =
        peer->count == 0 ? NULL : slot_of(peer->channels, peer->capacity, channel)->flow;

    return flow != NULL ? flow : add_flow(peer, channel);
}

void hvd_net_peer_fail(struct hvd_net_peer *peer, int status)
{
    peer->status = status;
    for (uint32_t i = 0; i < peer->capacity; i++) {
        if (peer->channels[i].flow != NULL) {
            hvd_net_flow_fail(peer->channels[i].flow, status);
        }
    }
}
