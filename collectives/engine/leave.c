/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdown: one rank asks, all leave together.
 *
 *   any rank   SHUTDOWN up to rank 0
 *   rank 0     SHUTDOWN down: no batch comes after this; what was agreed is run to its end
 *   leaves     DRAINED up, when a whole subtree has run everything
 *   rank 0     CLOSE down: nobody needs anybody's data any more, sockets may close */
#include <stdlib.h>
#include <unistd.h>

#include "collectives/engine/engine_state.h"
#include "gpu_binding/base/log.h"

static const char shutdown_text[] = "Horovod has been shut down. This was caused by an "
                                    "exception on one of the ranks or an "
                                    "attempt to allreduce, allgather or broadcast a "
                                    "tensor after one of the ranks finished "
                                    "execution. If the shutdown was caused by an "
                                    "exception, you should see the exception in "
                                    "the log before the first shutdown message.";

/* How long leaving waits for batches that were agreed, on any rank. */
static const int leave_timeout_ms = 30000;

/* How long closing may take to write out the last messages. */
static const int flush_timeout_ms = 2000;

static void begin_draining(struct hvd_engine *engine)
{
    if (engine->phase != HVD_PHASE_RUNNING) {
        return;
    }
    engine->phase = HVD_PHASE_DRAINING;
    hvd_uplink_send_down(engine->uplink, HVD_MESSAGE_SHUTDOWN, NULL, 0);
    hvd_engine_refuse(engine, HVD_ERR_SHUTDOWN, shutdown_text);
    hvd_agree_drop(engine, false, HVD_ERR_SHUTDOWN, shutdown_text);
}

void hvd_leave_on_shutdown(struct hvd_engine *engine, bool from_parent)
{
    if (from_parent) {
        begin_draining(engine);
    } else if (engine->boot->rank == 0) {
        engine->wants_shutdown = true;
    } else {
        hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_SHUTDOWN, NULL, 0);
    }
}

void hvd_leave_on_close(struct hvd_engine *engine)
{
    hvd_control_send_down(engine->control, HVD_MESSAGE_CLOSE, NULL, 0);
    hvd_control_expect_close(engine->control);
    engine->phase = HVD_PHASE_CLOSED;
    if (engine->report != NULL) {
        hvd_lateness_report_write(engine->report);
    }
}

/* What is planned may have been started by some only: first the plan has to end. */
static void shut_down(struct hvd_engine *engine)
{
    int status = 0;

    if (hvd_agreement_settle(engine->agreement, &status)) {
        begin_draining(engine);
    } else if (status != 0) {
        hvd_engine_fail(engine, engine->boot->rank, status, "no memory for messages");
    }
}

void hvd_leave_progress(struct hvd_engine *engine)
{
    if (engine->wants_shutdown && engine->phase == HVD_PHASE_RUNNING &&
        !engine->has_failed) {
        shut_down(engine);
    }
    if (engine->phase != HVD_PHASE_DRAINING || engine->sent_drained ||
        !hvd_teams_are_idle(engine->teams) || !hvd_gpu_is_idle(engine->gpu) ||
        engine->drained_children < hvd_uplink_children(engine->uplink)) {
        return;
    }
    engine->sent_drained = true;
    if (engine->report != NULL) {
        hvd_lateness_report_close(engine->report);
    }
    if (engine->boot->rank == 0) {
        hvd_leave_on_close(engine);
    } else {
        hvd_timeline_leave(engine->timeline);
        hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_DRAINED, NULL, 0);
    }
}

static bool has_left(struct hvd_engine *engine, const void *arg)
{
    (void)arg;
    return engine->has_failed || engine->phase == HVD_PHASE_CLOSED;
}

void hvd_engine_leave(struct hvd_engine *engine)
{
    hvd_engine_take_over(engine);
    if (!has_left(engine, NULL) && engine->phase == HVD_PHASE_RUNNING) {
        hvd_leave_on_shutdown(engine, false);
    }
    if (!hvd_engine_drive_on(engine, has_left, NULL, leave_timeout_ms)) {
        hvd_log(HVD_LOG_WARN,
                "shutdown: not all ranks have finished within %d s; leaving without them",
                leave_timeout_ms / 1000);
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_TIMEOUT,
                        "this rank left without the others: they did not finish in time");
    }
    hvd_engine_hand_back(engine);
}

static void stop_thread(struct hvd_engine *engine)
{
    if (engine->has_thread) {
        atomic_store(&engine->stop, true);
        hvd_engine_ring(engine->kick);
        pthread_join(engine->thread, NULL);
    }
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void close_bells(struct hvd_engine *engine)
{
    for (int i = 0; i < engine->peer_bell_count; i++) {
        close_fd(engine->peer_bells[i]);
    }
    free(engine->peer_bells);
    close_fd(engine->inner);
    close_fd(engine->outer);
    close_fd(engine->wake);
    close_fd(engine->doorbell);
    close_fd(engine->kick);
}

void hvd_engine_destroy(struct hvd_engine *engine)
{
    bool gpu_has_stopped;

    if (engine == NULL) {
        return;
    }
    stop_thread(engine);
    gpu_has_stopped = hvd_gpu_stop(engine->gpu);
    hvd_net_destroy(engine->net);
    hvd_teams_destroy(engine->teams);
    hvd_gpu_destroy(engine->gpu, gpu_has_stopped);
    hvd_lateness_report_destroy(engine->report);
    hvd_timeline_destroy(engine->timeline);
    hvd_uplink_destroy(engine->uplink);
    hvd_control_destroy(engine->control, flush_timeout_ms);
    hvd_shm_destroy(engine->shm);
    hvd_tuning_destroy(engine);
    hvd_agree_destroy(engine);
    hvd_table_finish(&engine->in_flight);
    hvd_sets_finish(&engine->sets);
    close_bells(engine);
    hvd_choice_table_destroy(engine->algorithms);
    hvd_boot_destroy(engine->boot);
    pthread_cond_destroy(&engine->ended);
    pthread_mutex_destroy(&engine->mail);
    pthread_mutex_destroy(&engine->recording);
    pthread_mutex_destroy(&engine->drive);
    pthread_mutex_destroy(&engine->turn);
    pthread_mutex_destroy(&engine->muting);
    free(engine);
}
