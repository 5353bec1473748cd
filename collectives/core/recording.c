/* SPDX-License-Identifier: Apache-2.0 */
/* The start and end of the timeline. */
#include "collectives/core/recording.h"

#include <stdio.h>
#include <string.h>

#include "collectives/core/job_state.h"
#include "collectives/run/teams.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/trace/ranges.h"
#include "collectives/trace/timeline.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

/* The value of HOROVOD_TIMELINE if only hvd_timeline_start names files. */
static const char dynamic[] = "DYNAMIC";

/* How long stop_timeline waits for the last events of other ranks. They come at once from
 * a rank whose process is not stopped. */
static const int64_t heard_timeout_ns = 5000000000;

/* How long stop_timeline waits for GPU work that rank 0 has launched before. */
static const int64_t landed_timeout_ns = 2000000000;

static void wake_driver(void *context)
{
    struct hvd_job *job = context;

    hvd_wakeup_notify(&job->wakeup);
}

/* Begins recording. A wrong path is only logged: it must not end the training. */
static void begin_timeline(struct hvd_job *job, const char *path, bool marks_cycles)
{
    struct hvd_error err = {0};

    if (hvd_timeline_begin(job->timeline, path, marks_cycles, &err) != 0) {
        hvd_log(HVD_LOG_ERROR, "timeline: %s; no timeline is written", err.text);
    }
}

static void note_start(void *context, const struct hvd_batch *batch, bool crosses_nodes)
{
    struct hvd_job *job = context;

    if (job->timeline != NULL) {
        hvd_timeline_started(job->timeline, batch, crosses_nodes);
    }
}

void hvd_recording_watch(struct hvd_job *job)
{
    if (job->timeline != NULL || job->settings.report != NULL ||
        job->settings.metrics != NULL) {
        hvd_teams_watch(job->teams, note_start, job);
    }
}

void hvd_recording_begin_range(struct hvd_request *request)
{
    char what[64];
    int64_t bytes = 0;

    if (request->range_name == NULL) {
        return;
    }
    for (int i = 0; i < request->count; i++) {
        bytes += hvd_descriptor_bytes(&request->entries[i].descriptor);
    }
    snprintf(what, sizeof(what), "Horovod%s%s", request->count > 1 ? "Grouped" : "",
             request->range_name);
    request->range = hvd_range_begin(HVD_RANGES_OPS, what, NULL, bytes);
}

static unsigned progress_timeline(void *self, int64_t now_ns)
{
    const struct hvd_job *job = self;

    (void)now_ns;
    hvd_timeline_progress(job->timeline);
    return 0;
}

static void close_timeline(void *self)
{
    struct hvd_job *job = self;

    hvd_timeline_destroy(job->timeline);
    job->timeline = NULL;
}

static const struct hvd_source timeline_source = {
    .name = "timeline",
    .progress = progress_timeline,
    .close = close_timeline,
};

static int create_timeline(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_timeline_config config = {
        .boot = job->boot,
        .uplink = job->uplink,
        .wake = wake_driver,
        .context = job,
        .of_all_ranks = job->settings.timeline_all_ranks,
    };

    int status = hvd_timeline_create(&config, &job->timeline, err);

    if (status == 0) {
        hvd_loop_add(&job->loop, &timeline_source, job, NULL);
    }
    return status;
}

int hvd_recording_open(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_job_settings *settings = &job->settings;
    int status;

    hvd_ranges_open(!settings->has_no_ranges);
    job->recording.has_ranges = hvd_ranges_are_on();
    if (settings->timeline == NULL) {
        return 0;
    }
    status = create_timeline(job, err);
    if (status != 0 || strcmp(settings->timeline, dynamic) == 0) {
        return status;
    }
    if (settings->timeline_all_ranks) {
        hvd_timeline_expect(job->timeline);
    }
    begin_timeline(job, settings->timeline, settings->timeline_mark_cycles);
    return 0;
}

int hvd_recording_on_message(struct hvd_job *job, const struct hvd_uplink_event *event,
                             struct hvd_error *err)
{
    int status = 0;

    if (job->timeline == NULL) {
        status = create_timeline(job, err);
        hvd_recording_watch(job);
    }
    hvd_timeline_on_message(job->timeline, event);
    return status;
}

/* Whether the last events of all ranks have arrived, or none can arrive any more. A rank
 * sends them before it reports that it has drained. */
static bool is_heard(const void *arg)
{
    const struct hvd_job *job = arg;

    return hvd_failure_has_come(&job->failure) ||
           hvd_shutdown_phase(&job->shutdown) == HVD_PHASE_CLOSED ||
           hvd_timeline_has_ended(job->timeline);
}

static bool has_landed(const void *arg)
{
    const struct hvd_job *job = arg;

    return hvd_failure_has_come(&job->failure) || job->gpu == NULL ||
           hvd_gpu_is_idle(job->gpu);
}

/* Ends and closes the timeline. The progress lock is held; another thread may leave the
 * job meanwhile. */
static void stop_timeline(struct hvd_job *job)
{
    if (hvd_timeline_is_on(job->timeline)) {
        hvd_progress_drive_on(job, has_landed, job, hvd_clock_ns() + landed_timeout_ns);
    }
    if (hvd_shutdown_phase(&job->shutdown) != HVD_PHASE_CLOSED) {
        hvd_timeline_end(job->timeline);
    }
    if (!hvd_progress_drive_on(job, is_heard, job, hvd_clock_ns() + heard_timeout_ns)) {
        hvd_log(HVD_LOG_WARN, "timeline: the last events of some ranks are missing");
    }
    hvd_timeline_close(job->timeline);
}

/* Begins a call about the timeline. Until end_call no other call starts or stops the
 * timeline, although stop_timeline lets other threads drive. */
static void begin_call(struct hvd_job *job)
{
    pthread_mutex_lock(&job->recording.lock);
    hvd_progress_lock(job);
}

static void end_call(struct hvd_job *job)
{
    hvd_progress_unlock(job);
    pthread_mutex_unlock(&job->recording.lock);
}

/* Begins a timeline, after the end of the previous one. The progress lock is held. */
static int start_timeline(struct hvd_job *job, const char *path, bool marks_cycles,
                          struct hvd_error *err)
{
    const struct hvd_error *refusal = hvd_submissions_refusal(&job->submissions);

    if (!hvd_timeline_records_to(job->timeline, path)) {
        stop_timeline(job);
    }
    if (hvd_failure_has_come(&job->failure) ||
        hvd_shutdown_phase(&job->shutdown) != HVD_PHASE_RUNNING) {
        return hvd_fail(err, refusal->status, "%s", refusal->text);
    }
    begin_timeline(job, path, marks_cycles);
    return 0;
}

int hvd_recording_start(struct hvd_job *job, const char *path, bool marks_cycles,
                        struct hvd_error *err)
{
    int status;

    if (job->settings.timeline == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "Set HOROVOD_TIMELINE=DYNAMIC to enable dynamic timeline usage.");
    }
    if (path == NULL || path[0] == '\0') {
        return hvd_fail(err, HVD_ERR_ARG, "a timeline needs the path of a file");
    }
    if (job->boot->rank != 0) {
        return 0;
    }
    begin_call(job);
    status = start_timeline(job, path, marks_cycles, err);
    end_call(job);
    return status;
}

void hvd_recording_stop(struct hvd_job *job)
{
    if (job->boot->rank == 0) {
        begin_call(job);
        stop_timeline(job);
        end_call(job);
    }
}

void hvd_recording_init(struct hvd_recording *recording)
{
    pthread_mutex_init(&recording->lock, NULL);
}

void hvd_recording_finish(struct hvd_recording *recording)
{
    pthread_mutex_destroy(&recording->lock);
}
