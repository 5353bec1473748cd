/* SPDX-License-Identifier: Apache-2.0 */
/* The control tree as a source. */
#include "collectives/core/talk.h"

#include "collectives/agreement/codec.h"
#include "collectives/core/addresses.h"
#include "collectives/core/job_state.h"
#include "collectives/core/negotiation.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/transport/control/uplink.h"
#include "collectives/transport/shm/mail.h"
#include "pmix_boot/boot.h"

/* How often the control sockets are read (a system call) while batches run, and in a job
 * of one node, whose messages pass through shared memory. */
static const int64_t sockets_every_ns = 50000;

/* The time limit for writing the last messages when closing. */
static const int flush_timeout_ms = 2000;

/* Ends the job: a rank that cannot go on must not leave the others waiting. */
static void end_job(struct hvd_job *job, int status, const char *text)
{
    hvd_failure_end_job(job, job->boot->rank, status, text);
}

/* --- messages --- */

static int on_shutdown(struct hvd_job *job, const struct hvd_uplink_event *event)
{
    if (event->from == HVD_UPLINK_PARENT) {
        hvd_shutdown_begin(job, event->payload, event->bytes);
    } else {
        hvd_shutdown_ask(job, event->payload, event->bytes);
    }
    return 0;
}

static int on_message(struct hvd_job *job, const struct hvd_uplink_event *event,
                      struct hvd_error *err)
{
    switch (event->type) {
    case HVD_MESSAGE_REPORTS:
        hvd_negotiation_on_reports(job, event->from + 1, event->payload, event->bytes);
        return 0;
    case HVD_MESSAGE_DECISIONS:
        hvd_negotiation_on_decisions(job, event->payload, event->bytes);
        return 0;
    case HVD_MESSAGE_SHUTDOWN:
        return on_shutdown(job, event);
    case HVD_MESSAGE_DRAINED:
        hvd_shutdown_on_drained(job);
        return 0;
    case HVD_MESSAGE_CLOSE:
        hvd_shutdown_on_close(job);
        return 0;
    case HVD_MESSAGE_ADDRESS:
        return hvd_addresses_on_one(&job->addresses, event->payload, event->bytes, err);
    case HVD_MESSAGE_ADDRESSES:
        return hvd_addresses_on_all(&job->addresses, event->payload, event->bytes, err);
    case HVD_MESSAGE_STRAGGLERS:
        if (job->report != NULL) {
            hvd_straggler_report_merge(job->report, event->payload, event->bytes);
            hvd_metrics_publish(job);
        }
        return 0;
    default:
        return hvd_recording_on_message(job, event, err);
    }
}

static void on_event(void *context, const struct hvd_uplink_event *event)
{
    struct hvd_job *job = context;
    struct hvd_error err = {0};
    int status;

    if (event->kind == HVD_UPLINK_ABORT) {
        hvd_failure_end_job(job, event->rank, HVD_ERR_PEER, event->text);
        return;
    }
    status = on_message(job, event, &err);
    if (status != 0) {
        end_job(job, status, err.text);
    }
}

/* --- the source --- */

int hvd_talk_hear_sockets(struct hvd_job *job)
{
    return hvd_uplink_progress_sockets(job->uplink, on_event, job);
}

static unsigned progress_tree(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    struct hvd_talk *talk = &job->talk;
    const bool is_rare = job->net == NULL || hvd_loop_works(&job->loop);
    int handled = 0, more = 0;

    if (hvd_mail_has_come(job->mail, HVD_MAIL_CONTROL)) {
        handled = hvd_uplink_progress_node(job->uplink, on_event, job);
    }
    if (!is_rare || now_ns - talk->sockets_seen_ns >= sockets_every_ns) {
        talk->sockets_seen_ns = now_ns;
        more = hvd_talk_hear_sockets(job);
        hvd_p2p_source_look(job);
        hvd_oversubscription_look(&job->oversubscription);
    }
    if (handled < 0 || more < 0) {
        const int status = handled < 0 ? handled : more;

        end_job(job, status,
                status == HVD_ERR_NET ? "the shared memory of this node is damaged"
                                      : "no memory for messages");
    }
    return handled != 0 || more != 0 ? HVD_SOURCE_MOVED : 0;
}

/* Only mail is checked: the sockets themselves wake the driver. */
static bool settle_tree(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_job *job = self;

    (void)wait;
    return !hvd_mail_has_come(job->mail, HVD_MAIL_CONTROL);
}

static void close_tree(void *self)
{
    struct hvd_job *job = self;

    hvd_uplink_destroy(job->uplink);
    hvd_control_destroy(job->control, flush_timeout_ms);
}

static const struct hvd_source tree_source = {
    .name = "control tree",
    .talks = true,
    .progress = progress_tree,
    .settle = settle_tree,
    .close = close_tree,
};

void hvd_talk_open(struct hvd_job *job)
{
    hvd_loop_add(&job->loop, &tree_source, job, NULL);
}
