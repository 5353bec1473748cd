/* SPDX-License-Identifier: Apache-2.0 */
/* The network between nodes as a source. */
#include "collectives/core/network.h"

#include <stdio.h>

#include "collectives/core/job_state.h"
#include "collectives/core/talk.h"
#include "collectives/transport/net/net.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"

/* Ends the job because a peer has left. First reads the control sockets, which may bring
 * the reason. If a rank seems to have stopped passing messages on, blames that rank
 * instead of the peer. */
static void blame_peer(struct hvd_job *job, int peer)
{
    char text[512];
    const char *reason;
    int culprit;

    hvd_net_failed_peer(job->net, &reason);
    hvd_talk_hear_sockets(job);
    culprit = hvd_negotiation_suspect(job, text, sizeof(text));
    if (culprit < 0) {
        culprit = peer;
        snprintf(text, sizeof(text),
                 "rank %d on %s died or cannot be reached any more (%s)", peer,
                 job->boot->peers[peer].host, reason);
    }
    hvd_failure_end_job(job, culprit, HVD_ERR_PEER, text);
}

/* Returns when the lost peer is to be blamed, unless the control network reports by then
 * which rank died; -1: never. */
static int64_t blames_at(const struct hvd_job *job)
{
    const int64_t lost_ns = job->network.lost_ns;

    return lost_ns == 0 || hvd_failure_has_come(&job->failure) ||
                   hvd_shutdown_phase(&job->shutdown) == HVD_PHASE_CLOSED
               ? -1
               : hvd_failure_certain_at(lost_ns);
}

bool hvd_network_waits_for_word(const struct hvd_job *job)
{
    return blames_at(job) >= 0;
}

static unsigned progress_net(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    int peer;
    bool moved = hvd_net_progress(job->net, &peer) > 0;

    (void)now_ns; /* measured before the poll, but the loss is noticed after it */
    if (peer >= 0 && hvd_failure_is_certain(&job->network.lost_ns, hvd_clock_ns()) &&
        hvd_network_waits_for_word(job)) {
        blame_peer(job, peer);
        return HVD_SOURCE_MOVED;
    }
    return moved ? HVD_SOURCE_MOVED : 0;
}

bool hvd_network_has_lost_peer(struct hvd_job *job)
{
    if (job->net == NULL || hvd_net_failed_peer(job->net, NULL) < 0) {
        return false;
    }
    hvd_failure_is_certain(&job->network.lost_ns, hvd_clock_ns());
    return true;
}

/* Mutes the network during a timed wait if nothing is running. A message would then only
 * tell that another rank has begun what this rank is about to submit. */
static bool settle_net(void *self, const struct hvd_timed_wait *wait)
{
    struct hvd_job *job = self;
    bool is_ignored = wait->end_ns >= 0 && !hvd_loop_works(&job->loop) &&
                      !hvd_net_is_sending(job->net) && !hvd_p2p_source_is_moving(job);

    return !hvd_wakeup_arm_net(&job->wakeup, job->net, is_ignored);
}

static int64_t net_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_job *job = self;

    (void)now_ns;
    return blames_at(job);
}

/* Destroys the network. Until then, it may write to the memory of messages and
 * batches. */
static void stop_net(void *self)
{
    struct hvd_job *job = self;

    hvd_net_destroy(job->net);
    job->net = NULL;
}

static const struct hvd_source net_source = {
    .name = "network",
    .progress = progress_net,
    .settle = settle_net,
    .deadline = net_deadline,
    .stop = stop_net,
};

void hvd_network_open(struct hvd_job *job)
{
    hvd_loop_add(&job->loop, &net_source, job, NULL);
}
