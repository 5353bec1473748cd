/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: the beginning and end of a recording, and rank 0's file. */
#include "collectives/trace/timeline.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/trace/timeline_state.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"

enum {
    /* Short, so that little is missing in the file after kill -9. */
    WRITE_PAUSE_MS = 20,
};

int hvd_timeline_create(const struct hvd_timeline_config *config,
                        struct hvd_timeline **out, struct hvd_error *err)
{
    struct hvd_timeline *timeline = calloc(1, sizeof(*timeline));

    if (timeline == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the timeline");
    }
    timeline->config = *config;
    atomic_init(&timeline->has_failed, false);
    if (hvd_timeline_init_ranks(timeline) != 0) {
        free(timeline);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the timeline");
    }
    *out = timeline;
    return 0;
}

void hvd_timeline_destroy(struct hvd_timeline *timeline)
{
    if (timeline == NULL) {
        return;
    }
    hvd_timeline_close(timeline);
    hvd_timeline_finish_ranks(timeline);
    free(timeline);
}

/* --- rank 0's file --- */

/* Called by the queue's thread: if the file cannot be written, the timeline ends, but the
 * job continues. */
static void note_failure(struct hvd_timeline *timeline, int status,
                         const struct hvd_error *err)
{
    if (status != 0) {
        hvd_log(HVD_LOG_WARN, "timeline: %s; nothing more is recorded", err->text);
        atomic_store(&timeline->has_failed, true);
    }
}

static size_t write_events(void *context, const struct hvd_trace_event *events,
                           size_t count, bool is_last)
{
    struct hvd_timeline *timeline = context;
    struct hvd_error err = {0};
    int status = 0;

    (void)is_last;
    for (size_t i = 0; status == 0 && i < count; i++) {
        char lines[HVD_TRACE_TEXT_BYTES];

        if (events[i].kind == HVD_TRACE_LINES) {
            status = hvd_trace_file_add(timeline->file, events[i].text,
                                        (size_t)events[i].number, &err);
        } else {
            size_t bytes = hvd_trace_text(&events[i], &timeline->frame, lines);

            status = hvd_trace_file_add(timeline->file, lines, bytes, &err);
        }
    }
    if (status == 0) {
        status = hvd_trace_file_flush(timeline->file, &err);
    }
    note_failure(timeline, status, &err);
    return count;
}

static int write_process(struct hvd_timeline *timeline, int rank, int64_t since_epoch_us,
                         struct hvd_error *err)
{
    const struct hvd_boot *boot = timeline->config.boot;
    bool has_name = timeline->config.of_all_ranks;
    char lines[HVD_TRACE_TEXT_BYTES];
    size_t bytes = hvd_trace_process(rank, has_name ? boot->peers[rank].host : NULL,
                                     since_epoch_us, lines);

    return hvd_trace_file_add(timeline->file, lines, bytes, err);
}

/* Writes the head of a timeline: when it began, and the names of the ranks if all ranks
 * are shown. */
static int write_head(struct hvd_timeline *timeline, struct hvd_error *err)
{
    int processes = timeline->config.of_all_ranks ? timeline->config.boot->size : 1;
    struct timespec now;
    int64_t now_us;
    int status = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    for (int rank = 0; status == 0 && rank < processes; rank++) {
        status = write_process(timeline, rank, rank == 0 ? now_us : 0, err);
    }
    return status != 0 ? status : hvd_trace_file_flush(timeline->file, err);
}

static int open_file(struct hvd_timeline *timeline, const char *path,
                     struct hvd_error *err)
{
    int status;

    timeline->path = strdup(path);
    if (timeline->path == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the timeline %s", path);
    }
    status = hvd_trace_file_open(path, &timeline->file, err);
    if (status == 0) {
        status = write_head(timeline, err);
    }
    return status;
}

static void close_file(struct hvd_timeline *timeline)
{
    hvd_trace_file_close(timeline->file);
    free(timeline->path);
    timeline->file = NULL;
    timeline->path = NULL;
    atomic_store(&timeline->has_failed, false);
}

bool hvd_timeline_records_to(const struct hvd_timeline *timeline, const char *path)
{
    return timeline != NULL && timeline->is_on && timeline->path != NULL &&
           strcmp(timeline->path, path) == 0;
}

int hvd_timeline_begin(struct hvd_timeline *timeline, const char *path, bool marks_cycles,
                       struct hvd_error *err)
{
    int status;

    if (timeline == NULL || timeline->config.boot->rank != 0) {
        return 0;
    }
    if (hvd_timeline_records_to(timeline, path)) {
        timeline->marks_cycles = marks_cycles;
        return 0;
    }
    hvd_timeline_end(timeline);
    hvd_timeline_close(timeline);
    timeline->marks_cycles = marks_cycles;
    timeline->start_ns = hvd_clock_ns();
    timeline->generation++;
    status = open_file(timeline, path, err);
    if (status == 0) {
        status = hvd_timeline_open_queue(timeline, write_events, WRITE_PAUSE_MS, err);
    }
    if (status != 0) {
        close_file(timeline);
        hvd_timeline_tell_stop(timeline); /* for ranks that expect a START */
        return status;
    }
    return hvd_timeline_tell_start(timeline);
}

void hvd_timeline_close(struct hvd_timeline *timeline)
{
    if (timeline != NULL) {
        hvd_timeline_close_queue(timeline);
        close_file(timeline);
    }
}
