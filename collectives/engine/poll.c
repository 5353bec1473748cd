/* SPDX-License-Identifier: Apache-2.0 */
/* One round over everything that can move. */
#include "collectives/engine/poll.h"

#include <stdio.h>

#include "collectives/agreement/message.h"
#include "collectives/engine/addresses.h"
#include "collectives/engine/engine_state.h"
#include "collectives/engine/gpu_tensors.h"
#include "collectives/engine/messaging.h"
#include "collectives/engine/negotiation.h"
#include "collectives/run/teams.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/observe/straggler_report.h"
#include "collectives/observe/timeline.h"
#include "collectives/transport/control/uplink.h"
#include "collectives/transport/net/net.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"

/* While data moves, new submissions and what other ranks say wait so long. */
static const int64_t talk_every_ns = 20000;

/* While batches run, and on one node, where messages go through its memory, the control
 * sockets (a system call) are looked at this seldom. */
static const int64_t control_every_ns = 50000;

/* A rank that cannot go on must not leave the others waiting: the job ends. */
static void end_job(struct hvd_engine *engine, int status, const char *text)
{
    hvd_failure_end_job(engine, engine->boot->rank, status, text);
}

/* --- what is said --- */

static int on_shutdown(struct hvd_engine *engine, const struct hvd_uplink_event *event)
{
    if (event->from == HVD_UPLINK_PARENT) {
        hvd_shutdown_begin(engine, event->payload, event->bytes);
    } else {
        hvd_shutdown_ask(engine, event->payload, event->bytes);
    }
    return 0;
}

static int on_message(struct hvd_engine *engine, const struct hvd_uplink_event *event,
                      struct hvd_error *err)
{
    switch (event->type) {
    case HVD_MESSAGE_REPORTS:
        hvd_negotiation_on_reports(engine, event->from + 1, event->payload, event->bytes);
        return 0;
    case HVD_MESSAGE_DECISIONS:
        hvd_negotiation_on_decisions(engine, event->payload, event->bytes);
        return 0;
    case HVD_MESSAGE_SHUTDOWN:
        return on_shutdown(engine, event);
    case HVD_MESSAGE_DRAINED:
        hvd_shutdown_on_drained(engine);
        return 0;
    case HVD_MESSAGE_CLOSE:
        hvd_shutdown_on_close(engine);
        return 0;
    case HVD_MESSAGE_ADDRESS:
        return hvd_addresses_on_one(&engine->addresses, event->payload, event->bytes,
                                    err);
    case HVD_MESSAGE_ADDRESSES:
        return hvd_addresses_on_all(&engine->addresses, event->payload, event->bytes,
                                    err);
    case HVD_MESSAGE_STRAGGLERS:
        if (engine->report != NULL) {
            hvd_straggler_report_merge(engine->report, event->payload, event->bytes);
        }
        return 0;
    default:
        return hvd_recording_on_message(engine, event, err);
    }
}

static void on_event(void *context, const struct hvd_uplink_event *event)
{
    struct hvd_engine *engine = context;
    struct hvd_error err = {0};
    int status;

    if (event->kind == HVD_UPLINK_ABORT) {
        hvd_failure_end_job(engine, event->rank, HVD_ERR_PEER, event->text);
        return;
    }
    status = on_message(engine, event, &err);
    if (status != 0) {
        end_job(engine, status, err.text);
    }
}

/* Messages, submissions, decisions. */
static bool poll_talk(struct hvd_engine *engine, int64_t now_ns)
{
    struct hvd_poll *poll = &engine->poll;
    const bool is_rare = engine->net == NULL || poll->has_batches;
    int handled = 0;

    if (engine->doorbells.peer_count > 1) {
        handled = hvd_uplink_progress_node(engine->uplink, on_event, engine);
    }
    if (!is_rare || now_ns - poll->control_seen_ns >= control_every_ns) {
        poll->control_seen_ns = now_ns;
        handled |= hvd_uplink_progress_sockets(engine->uplink, on_event, engine);
        hvd_messaging_look(engine);
    }
    if (handled < 0) {
        end_job(engine, handled,
                handled == HVD_ERR_ARG ? "the shared memory of this node is damaged"
                                       : "no memory for messages");
    }
    poll->heard_ns = now_ns;
    return hvd_negotiation_progress(engine, now_ns) || handled != 0;
}

/* --- what is moved --- */

/* A peer has left. The word of why does not come through a rank that is stopped. */
static void blame_net_peer(struct hvd_engine *engine, int peer)
{
    char text[512];
    const char *reason;
    int culprit;

    hvd_net_failed_peer(engine->net, &reason);
    hvd_uplink_progress_sockets(engine->uplink, on_event, engine);
    culprit = hvd_negotiation_suspect(engine, text, sizeof(text));
    if (culprit < 0) {
        culprit = peer;
        snprintf(text, sizeof(text),
                 "rank %d on %s died or cannot be reached any more (%s)", peer,
                 engine->boot->peers[peer].host, reason);
    }
    hvd_failure_end_job(engine, culprit, HVD_ERR_PEER, text);
}

static bool poll_net(struct hvd_engine *engine)
{
    int peer;
    bool moved = hvd_net_progress(engine->net, &peer) > 0;

    if (peer >= 0 && hvd_failure_is_certain(&engine->failure.lost_ns, hvd_clock_ns()) &&
        hvd_failure_blames_at(engine) >= 0) {
        blame_net_peer(engine, peer);
        return true;
    }
    return moved;
}

static bool poll_gpu(struct hvd_engine *engine)
{
    struct hvd_error err = {0};
    bool moved = false;
    int status = hvd_gpu_tensors_progress(engine, &moved, &err);

    if (status == HVD_ERR_NET &&
        !hvd_failure_is_certain(&engine->failure.gpu_lost_ns, hvd_clock_ns())) {
        return moved; /* the word of who died may be on its way */
    }
    if (status != 0) {
        end_job(engine, status, err.text);
    }
    return moved || status != 0;
}

static bool poll_messages(struct hvd_engine *engine, int64_t now_ns)
{
    bool moved = hvd_messaging_progress(engine, now_ns);
    const struct hvd_error *failure = hvd_messaging_failure(engine);

    if (failure->status != 0) {
        end_job(engine, failure->status, failure->text);
    }
    return moved;
}

static bool needs_messages(const struct hvd_engine *engine)
{
    return engine->messaging.messages != NULL || engine->messaging.failure.status != 0 ||
           atomic_load(&engine->submissions.messages.has_some);
}

/* The death of a rank may first be seen by a batch that sends to it. The batch does not know which
 * rank it was; the network does, or the control network will say. */
static bool has_lost_peer(struct hvd_engine *engine)
{
    if (engine->net == NULL || hvd_net_failed_peer(engine->net, NULL) < 0) {
        return false;
    }
    hvd_failure_is_certain(&engine->failure.lost_ns, hvd_clock_ns());
    return true;
}

/* Gives each team a turn. */
static bool poll_batches(struct hvd_engine *engine)
{
    bool moved = false;
    int status;

    if (engine->failure.lost_ns != 0 && hvd_failure_blames_at(engine) >= 0) {
        return false; /* they would fail, and for a lesser reason */
    }
    status = hvd_teams_progress(engine->teams, hvd_negotiation_finish, engine, &moved);
    engine->poll.has_batches = status == HVD_INPROGRESS;
    if (status == HVD_ERR_PEER && has_lost_peer(engine)) {
        return true;
    }
    if (status < 0) {
        end_job(engine, status, hvd_teams_failure(engine->teams)->text);
    }
    return moved || status < 0;
}

/* --- all --- */

/* What is not there is not asked: other ranks on the node, a network, a GPU on which a tensor has
 * been, a timeline. */
bool hvd_poll_all(struct hvd_engine *engine)
{
    struct hvd_poll *poll = &engine->poll;
    int64_t now_ns = hvd_clock_ns();
    bool is_busy =
        poll->has_batches && poll->data_moves && now_ns - poll->heard_ns < talk_every_ns;
    bool moved = needs_messages(engine) && poll_messages(engine, now_ns);

    moved |= !is_busy && poll_talk(engine, now_ns);
    if (!engine->oversubscription.is_known) {
        hvd_oversubscription_look(&engine->oversubscription,
                                  engine->doorbells.peer_count);
    }
    poll->data_moves = engine->net != NULL && poll_net(engine);
    if (atomic_load(&engine->gpu->is_open)) {
        poll->data_moves |= poll_gpu(engine);
    }
    poll->data_moves |= poll_batches(engine);
    if (engine->shutdown.is_wanted || engine->shutdown.phase == HVD_PHASE_DRAINING) {
        hvd_shutdown_progress(engine);
    }
    if (engine->timeline != NULL) {
        hvd_timeline_progress(engine->timeline);
    }
    return poll->data_moves || moved;
}

bool hvd_poll_before_sleep(struct hvd_engine *engine, bool ignores_net)
{
    if (atomic_load(&engine->submissions.collectives.has_some) ||
        hvd_messaging_has_news(engine) ||
        (engine->doorbells.peer_count > 1 && hvd_uplink_has_mail(engine->uplink))) {
        return true;
    }
    if (engine->net != NULL) {
        bool is_ignored = ignores_net && !engine->poll.has_batches &&
                          !hvd_net_is_sending(engine->net) &&
                          !hvd_messaging_is_moving(engine);

        if (hvd_doorbells_arm_net(&engine->doorbells, engine->net, is_ignored)) {
            return true;
        }
    }
    return poll_batches(engine);
}

/* -1 is never. */
static int64_t soonest(int64_t one, int64_t other)
{
    return one >= 0 && (other < 0 || one < other) ? one : other;
}

int64_t hvd_poll_deadline(const struct hvd_engine *engine, int64_t until_ns,
                          int64_t now_ns)
{
    int64_t due = soonest(until_ns, hvd_negotiation_deadline(engine, now_ns));

    if (engine->messaging.messages != NULL) {
        due = soonest(due, hvd_messaging_deadline(engine));
    }
    if (engine->failure.lost_ns != 0) {
        due = soonest(due, hvd_failure_blames_at(engine));
    }
    if (atomic_load(&engine->gpu->is_open)) {
        due = soonest(due, hvd_gpu_tensors_deadline(engine, now_ns));
    }
    return due;
}
