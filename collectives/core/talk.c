/* SPDX-License-Identifier: Apache-2.0 */
/* The control tree as a source. */
#include "collectives/core/talk.h"

#include "collectives/agreement/codec.h"
#include "collectives/core/addresses.h"
#include "collectives/core/engine_state.h"
#include "collectives/core/negotiation.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/transport/control/uplink.h"
#include "collectives/transport/shm/mail.h"
#include "pmix_boot/boot.h"

/* While batches run, and on one node, where messages go through its memory, the control
 * sockets (a system call) are looked at this seldom. */
static const int64_t sockets_every_ns = 50000;

/* How long closing may take to write out the last messages. */
static const int flush_timeout_ms = 2000;

/* A rank that cannot go on must not leave the others waiting: the job ends. */
static void end_job(struct hvd_engine *engine, int status, const char *text)
{
    hvd_failure_end_job(engine, engine->boot->rank, status, text);
}

/* --- messages --- */

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
        return hvd_recording_on_p2p(engine, event, err);
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

/* --- the source --- */

int hvd_talk_hear_sockets(struct hvd_engine *engine)
{
    return hvd_uplink_progress_sockets(engine->uplink, on_event, engine);
}

static unsigned progress_tree(void *self, int64_t now_ns)
{
    struct hvd_engine *engine = self;
    struct hvd_talk *talk = &engine->talk;
    const bool is_rare = engine->net == NULL || hvd_loop_works(&engine->loop);
    int handled = 0, more = 0;

    if (hvd_mail_has_come(engine->mail, HVD_MAIL_CONTROL)) {
        handled = hvd_uplink_progress_node(engine->uplink, on_event, engine);
    }
    if (!is_rare || now_ns - talk->sockets_seen_ns >= sockets_every_ns) {
        talk->sockets_seen_ns = now_ns;
        more = hvd_talk_hear_sockets(engine);
        hvd_messaging_look(engine);
        hvd_oversubscription_look(&engine->oversubscription);
    }
    if (handled < 0 || more < 0) {
        const int status = handled < 0 ? handled : more;

        end_job(engine, status,
                status == HVD_ERR_NET ? "the shared memory of this node is damaged"
                                      : "no memory for messages");
    }
    return handled != 0 || more != 0 ? HVD_SOURCE_MOVED : 0;
}

/* The sockets wake the driver by themselves. */
static bool settle_tree(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_engine *engine = self;

    (void)wait;
    return !hvd_mail_has_come(engine->mail, HVD_MAIL_CONTROL);
}

static void close_tree(void *self)
{
    struct hvd_engine *engine = self;

    hvd_uplink_destroy(engine->uplink);
    hvd_control_destroy(engine->control, flush_timeout_ms);
}

static const struct hvd_source tree_source = {
    .name = "control tree",
    .talks = true,
    .progress = progress_tree,
    .settle = settle_tree,
    .close = close_tree,
};

void hvd_talk_open(struct hvd_engine *engine)
{
    hvd_loop_add(&engine->loop, &tree_source, engine, NULL);
}
