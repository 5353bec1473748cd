/* SPDX-License-Identifier: Apache-2.0 */
/* The start and end of the timeline (timeline.h). job->timeline is NULL if there cannot
 * be one: the environment names no timeline, and rank 0 has not asked this rank for its
 * part. */
#ifndef HVD_RECORDING_H
#define HVD_RECORDING_H

#include <pthread.h>
#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_job;
struct hvd_request;
struct hvd_uplink_event;

struct hvd_recording {
    bool has_ranges; /* a profiler shows ranges */
    /* taken before the progress lock, for the whole of a call about the timeline */
    pthread_mutex_t lock;
};

static inline bool hvd_recording_has_ranges(const struct hvd_recording *recording)
{
    return recording->has_ranges;
}

void hvd_recording_init(struct hvd_recording *recording);
void hvd_recording_finish(struct hvd_recording *recording);

/* Opens the timeline, recording if the environment asks for it, and the profilers'
 * ranges. */
int hvd_recording_open(struct hvd_job *job, struct hvd_error *err);

/* Begins the profiler's range of a request, if ranges are on; the range ends with the
 * request. Call it before the request is submitted: another thread may end the request at
 * once. Any thread. */
void hvd_recording_begin_range(struct hvd_request *request);

/* Records starting batches, if there is a timeline, a straggler report, or metrics. */
void hvd_recording_watch(struct hvd_job *job);

/* Do the work of hvd_timeline_start and hvd_timeline_stop in hvd.h, for an open job. Any
 * thread, without the progress lock. */
int hvd_recording_start(struct hvd_job *job, const char *path, bool marks_cycles,
                        struct hvd_error *err);
void hvd_recording_stop(struct hvd_job *job);

/* Handles a message that no other part of core knows. Returns 0, or a status after which
 * the job must end. */
int hvd_recording_on_message(struct hvd_job *job, const struct hvd_uplink_event *event,
                             struct hvd_error *err);

#endif
