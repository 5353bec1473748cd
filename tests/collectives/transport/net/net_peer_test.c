/* SPDX-License-Identifier: Apache-2.0 */
/* The channels of a peer: each is found by its number, and a failure of the peer ends
 * them all. */
#include "collectives/transport/net/net_peer.h"

#include "tests/tap.h"

enum {
    CHANNELS = 1000,
    STRIDE = 4096, /* the channels of process sets have numbers that lie far apart */
};

/* A network that accepts fragments but never sends them. */
static int hold(void *peer, struct hvd_net_fragment *fragment)
{
    (void)peer;
    (void)fragment;
    return HVD_INPROGRESS;
}

static struct hvd_net_pool pool;
static const struct hvd_net_flow_link link_to_peer = {.send = hold, .pool = &pool};

static struct hvd_net_peer *make_peer(void)
{
    struct hvd_net_peer *peer = NULL;

    if (hvd_net_peer_create(NULL, &link_to_peer, 3, 0, &peer) != 0) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return peer;
}

static void test_channels(void)
{
    struct hvd_net_peer *peer = make_peer();
    struct hvd_net_flow *flows[CHANNELS];
    int wrong = 0;

    tap_ok(peer->rank == 3 && peer->count == 0, "a peer has no channel at first");
    for (uint32_t i = 0; i < CHANNELS; i++) {
        flows[i] = hvd_net_peer_flow(peer, i * STRIDE);
        wrong += flows[i] == NULL || peer->count != i + 1;
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        wrong += hvd_net_peer_flow(peer, i * STRIDE) != flows[i];
    }
    tap_ok(wrong == 0 && peer->count == CHANNELS,
           "each of %d channels is found by its number", CHANNELS);
    hvd_net_peer_destroy(peer);
}

static void test_failure(void)
{
    struct hvd_net_peer *peer = make_peer();
    struct hvd_net_op before = {.bytes = 1}, after = {.bytes = 1}, later = {.bytes = 1};
    struct hvd_net_flow *one = hvd_net_peer_flow(peer, 1);
    struct hvd_net_flow *other = hvd_net_peer_flow(peer, 2);

    hvd_net_recv(one, &before);
    hvd_net_peer_fail(peer, HVD_ERR_PEER);
    tap_ok(before.status == HVD_ERR_PEER,
           "a failure ends an operation that is under way");
    hvd_net_recv(other, &after);
    tap_ok(after.status == HVD_ERR_PEER,
           "an operation that starts later on another channel fails");
    hvd_net_recv(hvd_net_peer_flow(peer, 3), &later);
    tap_ok(later.status == HVD_ERR_PEER, "an operation on a new channel fails");
    hvd_net_peer_destroy(peer);
}

int main(void)
{
    test_channels();
    test_failure();
    hvd_net_pool_finish(&pool);
    return tap_done();
}
