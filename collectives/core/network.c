/* SPDX-License-Identifier: Apache-2.0 */
/* The network between nodes as a source. */
#include "collectives/core/network.h"

#include <stdio.h>

#include "collectives/core/engine_state.h"
#include "collectives/core/talk.h"
#include "collectives/transport/net/net.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"

/* Ends the job for the sake of a peer that has left. A stopped rank does not pass on the word of why;
 * the sockets may have brought it. */
static void blame_peer(struct hvd_engine *engine, int peer)
{
    char text[512];
    const char *reason;
    int culprit;

    hvd_net_failed_peer(engine->net, &reason);
    hvd_talk_hear_sockets(engine);
    culprit = hvd_negotiation_suspect(engine, text, sizeof(text));
    if (culprit < 0) {
        culprit = peer;
        snprintf(text, sizeof(text),
                 "rank %d on %s died or cannot be reached any more (%s)", peer,
                 engine->boot->peers[peer].host, reason);
    }
    hvd_failure_end_job(engine, culprit, HVD_ERR_PEER, text);
}

/* When the peer that was lost is to be blamed, unless the control network has told by
 * then who died; -1: never. */
static int64_t blames_at(const struct hvd_engine *engine)
{
    const int64_t lost_ns = engine->network.lost_ns;

    return lost_ns == 0 || hvd_failure_has_come(&engine->failure) ||
                   hvd_shutdown_phase(&engine->shutdown) == HVD_PHASE_CLOSED
               ? -1
               : hvd_failure_certain_at(lost_ns);
}

bool hvd_network_waits_for_word(const struct hvd_engine *engine)
{
    return blames_at(engine) >= 0;
}

static unsigned progress_net(void *self, int64_t now_ns)
{
    struct hvd_engine *engine = self;
    int peer;
    bool moved = hvd_net_progress(engine->net, &peer) > 0;

    (void)now_ns; /* before the poll */
    if (peer >= 0 && hvd_failure_is_certain(&engine->network.lost_ns, hvd_clock_ns()) &&
        hvd_network_waits_for_word(engine)) {
        blame_peer(engine, peer);
        return HVD_SOURCE_MOVED;
    }
    return moved ? HVD_SOURCE_MOVED : 0;
}

bool hvd_network_has_lost_peer(struct hvd_engine *engine)
{
    if (engine->net == NULL || hvd_net_failed_peer(engine->net, NULL) < 0) {
        return false;
    }
    hvd_failure_is_certain(&engine->network.lost_ns, hvd_clock_ns());
    return true;
}

/* While this rank timed waits with nothing under way, the network does not wake it: another rank has only
 * begun what this one is about to submit. */
static bool settle_net(void *self, const struct hvd_timed_wait *wait)
{
    struct hvd_engine *engine = self;
    bool is_ignored = wait->end_ns >= 0 && !hvd_loop_works(&engine->loop) &&
                      !hvd_net_is_sending(engine->net) &&
                      !hvd_messaging_is_moving(engine);

    return !hvd_wakeup_arm_net(&engine->wakeup, engine->net, is_ignored);
}

static int64_t net_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_engine *engine = self;

    (void)now_ns;
    return blames_at(engine);
}

/* Until now the net may write to memory of messages and batches. */
static void stop_net(void *self)
{
    struct hvd_engine *engine = self;

    hvd_net_destroy(engine->net);
    engine->net = NULL;
}

static const struct hvd_source net_source = {
    .name = "network",
    .progress = progress_net,
    .settle = settle_net,
    .deadline = net_deadline,
    .stop = stop_net,
};

void hvd_network_open(struct hvd_engine *engine)
{
    hvd_loop_add(&engine->loop, &net_source, engine, NULL);
}
