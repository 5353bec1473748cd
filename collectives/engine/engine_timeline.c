/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's timeline: when it begins and ends. */
#include <string.h>

#include "collectives/engine/engine_state.h"
#include "collectives/observe/ranges.h"
#include "collectives/observe/timeline.h"
#include "gpu_binding/base/log.h"

/* What stands for a file in HOROVOD_TIMELINE when only hvd_timeline_start names files. */
static const char dynamic[] = "DYNAMIC";

/* How long ending waits for the last events of other ranks: they only have to be awake. */
static const int heard_timeout_ms = 5000;

/* And for what GPUs do with tensors of rank 0 that were launched before. */
static const int landed_timeout_ms = 2000;

static void wake(void *context)
{
    struct hvd_engine *engine = context;

    hvd_engine_ring(engine->wake);
    atomic_store(&engine->was_rung, true);
}

/* A wrong path must not cost the training. */
static void begin(struct hvd_engine *engine, const char *path, bool marks_cycles)
{
    struct hvd_error err = {0};

    if (hvd_timeline_begin(engine->timeline, path, marks_cycles, &err) != 0) {
        hvd_log(HVD_LOG_ERROR, "timeline: %s; there will be none", err.text);
    }
}

int hvd_engine_open_timeline(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_settings *settings = &engine->settings;
    const struct hvd_timeline_place place = {
        .boot = engine->boot,
        .uplink = engine->uplink,
        .wake = wake,
        .context = engine,
        .of_all_ranks = settings->timeline_all_ranks,
    };
    int status = hvd_timeline_create(&place, &engine->timeline, err);

    hvd_ranges_open(!settings->has_no_ranges);
    if (status != 0 || settings->timeline == NULL ||
        strcmp(settings->timeline, dynamic) == 0) {
        return status;
    }
    if (settings->timeline_all_ranks) {
        hvd_timeline_expect(engine->timeline);
    }
    begin(engine, settings->timeline, settings->timeline_mark_cycles);
    return 0;
}

void hvd_engine_batch_started(void *context, const struct hvd_batch *batch,
                              bool crosses_nodes)
{
    struct hvd_engine *engine = context;

    hvd_timeline_started(engine->timeline, batch, crosses_nodes);
}

/* Every rank sends its last events before it says that it has drained. */
static bool is_heard(struct hvd_engine *engine, const void *arg)
{
    (void)arg;
    return engine->has_failed || engine->phase == HVD_PHASE_CLOSED ||
           hvd_timeline_has_ended(engine->timeline);
}

static bool has_landed(struct hvd_engine *engine, const void *arg)
{
    (void)arg;
    return engine->has_failed || engine->gpu == NULL || hvd_gpu_is_idle(engine->gpu);
}

/* drive held; another thread may leave the job meanwhile */
static void stop(struct hvd_engine *engine)
{
    if (hvd_timeline_is_on(engine->timeline)) {
        hvd_engine_drive_on(engine, has_landed, NULL, landed_timeout_ms);
    }
    if (engine->phase != HVD_PHASE_CLOSED) {
        hvd_timeline_end(engine->timeline);
    }
    if (!hvd_engine_drive_on(engine, is_heard, NULL, heard_timeout_ms)) {
        hvd_log(HVD_LOG_WARN, "timeline: the last events of some ranks are missing");
    }
    hvd_timeline_close(engine->timeline);
}

/* Between the two no other call starts or stops the timeline, though stop lets others drive. */
static void begin_call(struct hvd_engine *engine)
{
    pthread_mutex_lock(&engine->recording);
    hvd_engine_take_over(engine);
}

static void end_call(struct hvd_engine *engine)
{
    hvd_engine_hand_back(engine);
    pthread_mutex_unlock(&engine->recording);
}

/* drive held */
static int start(struct hvd_engine *engine, const char *path, bool marks_cycles,
                 struct hvd_error *err)
{
    if (!hvd_timeline_records_to(engine->timeline, path)) {
        stop(engine);
    }
    if (engine->has_failed || engine->phase != HVD_PHASE_RUNNING) {
        return hvd_fail(err, engine->refusal.status, "%s", engine->refusal.text);
    }
    begin(engine, path, marks_cycles);
    return 0;
}

int hvd_engine_timeline_start(struct hvd_engine *engine, const char *path,
                              bool marks_cycles, struct hvd_error *err)
{
    int status;

    if (engine->settings.timeline == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "Set HOROVOD_TIMELINE=DYNAMIC to enable dynamic timeline usage.");
    }
    if (path == NULL || path[0] == '\0') {
        return hvd_fail(err, HVD_ERR_ARG, "a timeline needs the path of a file");
    }
    if (engine->boot->rank != 0) {
        return 0;
    }
    begin_call(engine);
    status = start(engine, path, marks_cycles, err);
    end_call(engine);
    return status;
}

void hvd_engine_timeline_stop(struct hvd_engine *engine)
{
    if (engine->boot->rank == 0) {
        begin_call(engine);
        stop(engine);
        end_call(engine);
    }
}
