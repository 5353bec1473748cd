/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdown: one rank asks, all leave together. */
#include "collectives/core/shutdown.h"

#include <ctype.h>
#include <string.h>

#include "collectives/agreement/codec.h"
#include "collectives/core/engine_state.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/trace/timeline.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/control/uplink.h"
#include "pmix_boot/boot.h"

static const char shutdown_text[] = "Horovod has been shut down. This was caused by an "
                                    "exception on one of the ranks or an "
                                    "attempt to allreduce, allgather or broadcast a "
                                    "tensor after one of the ranks finished "
                                    "execution. If the shutdown was caused by an "
                                    "exception, you should see the exception in "
                                    "the log before the first shutdown message.";

/* One line: what is no text in it becomes a space. */
static void note_why(struct hvd_shutdown *shutdown, const char *why, size_t bytes)
{
    size_t length = bytes < sizeof(shutdown->why) ? bytes : sizeof(shutdown->why) - 1;

    for (size_t i = 0; i < length; i++) {
        shutdown->why[i] = iscntrl((unsigned char)why[i]) ? ' ' : why[i];
    }
    shutdown->why[length] = '\0';
}

void hvd_shutdown_on_drained(struct hvd_engine *engine)
{
    engine->shutdown.drained_children++;
}

void hvd_shutdown_on_close(struct hvd_engine *engine)
{
    const struct hvd_error *refusal = hvd_submissions_refusal(&engine->submissions);

    hvd_control_send_down(engine->control, HVD_MESSAGE_CLOSE, NULL, 0);
    hvd_control_expect_close(engine->control);
    engine->shutdown.phase = HVD_PHASE_CLOSED;
    hvd_loop_end(&engine->loop, refusal->status, refusal->text);
}

static bool has_drained(const struct hvd_engine *engine)
{
    return hvd_loop_has_drained(&engine->loop) &&
           engine->shutdown.drained_children >= hvd_uplink_children(engine->uplink);
}

static void say_drained(struct hvd_engine *engine)
{
    engine->shutdown.sent_drained = true;
    if (engine->report != NULL) {
        hvd_straggler_report_close(engine->report);
    }
    if (engine->boot->rank == 0) {
        hvd_shutdown_on_close(engine);
    } else {
        hvd_timeline_leave(engine->timeline);
        hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_DRAINED, NULL, 0);
    }
}

static unsigned progress_shutdown(void *self, int64_t now_ns)
{
    struct hvd_engine *engine = self;
    struct hvd_shutdown *shutdown = &engine->shutdown;

    (void)now_ns;
    if (shutdown->is_wanted && shutdown->phase == HVD_PHASE_RUNNING &&
        !hvd_failure_has_come(&engine->failure) && hvd_loop_may_drain(&engine->loop)) {
        hvd_shutdown_begin(engine, shutdown->why, strlen(shutdown->why));
    }
    if (shutdown->phase == HVD_PHASE_DRAINING && !shutdown->sent_drained &&
        has_drained(engine)) {
        say_drained(engine);
    }
    return 0;
}

/* The sources before this one may have drained while they settled. */
static bool settle_shutdown(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_engine *engine = self;

    (void)wait;
    return engine->shutdown.phase != HVD_PHASE_DRAINING ||
           engine->shutdown.sent_drained || hvd_failure_has_come(&engine->failure) ||
           !has_drained(engine);
}

static const struct hvd_source shutdown_source = {
    .name = "shutdown",
    .progress = progress_shutdown,
    .settle = settle_shutdown,
};

static void watch_shutdown(struct hvd_engine *engine)
{
    if (!engine->shutdown.is_watched) {
        engine->shutdown.is_watched = true;
        hvd_loop_add(&engine->loop, &shutdown_source, engine, NULL);
    }
}

void hvd_shutdown_begin(struct hvd_engine *engine, const char *why, size_t bytes)
{
    struct hvd_shutdown *shutdown = &engine->shutdown;
    struct hvd_error failure;

    if (shutdown->phase != HVD_PHASE_RUNNING) {
        return;
    }
    note_why(shutdown, why, bytes);
    hvd_fail(&failure, HVD_ERR_SHUTDOWN, "%s %s", shutdown_text, shutdown->why);
    shutdown->phase = HVD_PHASE_DRAINING;
    hvd_uplink_send_down(engine->uplink, HVD_MESSAGE_SHUTDOWN, shutdown->why,
                         strlen(shutdown->why));
    hvd_submissions_refuse(&engine->submissions, failure.status, failure.text);
    hvd_loop_drain(&engine->loop, failure.status, failure.text);
    watch_shutdown(engine);
}

void hvd_shutdown_ask(struct hvd_engine *engine, const char *why, size_t bytes)
{
    struct hvd_shutdown *shutdown = &engine->shutdown;

    if (shutdown->why[0] == '\0') {
        note_why(shutdown, why, bytes);
    }
    if (engine->boot->rank == 0) {
        shutdown->is_wanted = true;
        watch_shutdown(engine);
    } else {
        hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_SHUTDOWN, shutdown->why,
                           strlen(shutdown->why));
    }
}
