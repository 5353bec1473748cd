/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdown: one rank asks, all leave together. */
#include "collectives/core/shutdown.h"

#include <ctype.h>
#include <string.h>

#include "collectives/agreement/codec.h"
#include "collectives/core/job_state.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/trace/timeline.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/control/uplink.h"
#include "pmix_boot/boot.h"

/* Stores the reason as one line: control characters become spaces. */
static void note_why(struct hvd_shutdown *shutdown, const char *why, size_t bytes)
{
    size_t length = bytes < sizeof(shutdown->why) ? bytes : sizeof(shutdown->why) - 1;

    for (size_t i = 0; i < length; i++) {
        shutdown->why[i] = iscntrl((unsigned char)why[i]) ? ' ' : why[i];
    }
    shutdown->why[length] = '\0';
}

void hvd_shutdown_on_drained(struct hvd_job *job)
{
    job->shutdown.drained_children++;
}

void hvd_shutdown_on_close(struct hvd_job *job)
{
    const struct hvd_error *refusal = hvd_submissions_refusal(&job->submissions);

    hvd_control_send_down(job->control, HVD_MESSAGE_CLOSE, NULL, 0);
    hvd_control_expect_close(job->control);
    job->shutdown.phase = HVD_PHASE_CLOSED;
    hvd_loop_end(&job->loop, refusal->status, refusal->text);
}

static bool has_drained(const struct hvd_job *job)
{
    return hvd_loop_has_drained(&job->loop) &&
           job->shutdown.drained_children >= hvd_uplink_children(job->uplink);
}

static void say_drained(struct hvd_job *job)
{
    job->shutdown.sent_drained = true;
    if (job->report != NULL) {
        hvd_straggler_report_close(job->report);
    }
    hvd_metrics_settle(job);
    if (job->boot->rank == 0) {
        hvd_shutdown_on_close(job);
    } else {
        hvd_timeline_leave(job->timeline);
        hvd_uplink_send_up(job->uplink, HVD_MESSAGE_DRAINED, NULL, 0);
    }
}

static unsigned progress_shutdown(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    struct hvd_shutdown *shutdown = &job->shutdown;

    (void)now_ns;
    if (shutdown->is_wanted && shutdown->phase == HVD_PHASE_RUNNING &&
        !hvd_failure_has_come(&job->failure) && hvd_loop_may_drain(&job->loop)) {
        hvd_shutdown_begin(job, shutdown->why, strlen(shutdown->why));
    }
    if (shutdown->phase == HVD_PHASE_DRAINING && !shutdown->sent_drained &&
        has_drained(job)) {
        say_drained(job);
    }
    return 0;
}

/* Keeps the rank awake if all sources have drained, but this rank has not reported it
 * yet: a source that settled before this one may have drained meanwhile. */
static bool settle_shutdown(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_job *job = self;

    (void)wait;
    return job->shutdown.phase != HVD_PHASE_DRAINING || job->shutdown.sent_drained ||
           hvd_failure_has_come(&job->failure) || !has_drained(job);
}

static const struct hvd_source shutdown_source = {
    .name = "shutdown",
    .progress = progress_shutdown,
    .settle = settle_shutdown,
};

static void watch_shutdown(struct hvd_job *job)
{
    if (!job->shutdown.is_watched) {
        job->shutdown.is_watched = true;
        hvd_loop_add(&job->loop, &shutdown_source, job, NULL);
    }
}

void hvd_shutdown_begin(struct hvd_job *job, const char *why, size_t bytes)
{
    struct hvd_shutdown *shutdown = &job->shutdown;

    if (shutdown->phase != HVD_PHASE_RUNNING) {
        return;
    }
    note_why(shutdown, why, bytes);
    shutdown->phase = HVD_PHASE_DRAINING;
    hvd_uplink_send_down(job->uplink, HVD_MESSAGE_SHUTDOWN, shutdown->why,
                         strlen(shutdown->why));
    hvd_submissions_refuse(&job->submissions, HVD_ERR_SHUTDOWN, shutdown->why);
    hvd_loop_drain(&job->loop, HVD_ERR_SHUTDOWN, shutdown->why);
    watch_shutdown(job);
}

void hvd_shutdown_ask(struct hvd_job *job, const char *why, size_t bytes)
{
    struct hvd_shutdown *shutdown = &job->shutdown;

    if (shutdown->why[0] == '\0') {
        note_why(shutdown, why, bytes);
    }
    if (job->boot->rank == 0) {
        shutdown->is_wanted = true;
        watch_shutdown(job);
    } else {
        hvd_uplink_send_up(job->uplink, HVD_MESSAGE_SHUTDOWN, shutdown->why,
                           strlen(shutdown->why));
    }
}
