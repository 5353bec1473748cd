/* SPDX-License-Identifier: Apache-2.0 */
/* When the timeline (timeline.h) begins and ends. job->timeline is NULL where there may
 * be none: the environment names none, and rank 0 has not asked for this rank's part of
 * its own. */
#ifndef HVD_RECORDING_H
#define HVD_RECORDING_H

#include <pthread.h>
#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_job;
struct hvd_request;
struct hvd_uplink_event;

struct hvd_recording {
    bool has_ranges; /* a profiler wants them */
    /* taken before the progress lock: one call about the timeline */
    pthread_mutex_t lock;
};

static inline bool hvd_recording_has_ranges(const struct hvd_recording *recording)
{
    return recording->has_ranges;
}

void hvd_recording_init(struct hvd_recording *recording);
void hvd_recording_finish(struct hvd_recording *recording);

/* The timeline, recording if the environment says so; profilers' ranges. */
int hvd_recording_open(struct hvd_job *job, struct hvd_error *err);

/* Where there are ranges: a request's, which ends with it. Before it is submitted: it may
 * end at once, on another thread. Any thread. */
void hvd_recording_begin_range(struct hvd_request *request);

/* Batches that start are recorded, if there is a timeline. */
void hvd_recording_watch(struct hvd_job *job);

/* As hvd_timeline_start and _stop of hvd.h, in a job. Any thread, without the progress
 * lock. */
int hvd_recording_start(struct hvd_job *job, const char *path, bool marks_cycles,
                        struct hvd_error *err);
void hvd_recording_stop(struct hvd_job *job);

/* A message that core itself does not know. Returns 0, or a status after which the job
 * must end. */
int hvd_recording_on_message(struct hvd_job *job, const struct hvd_uplink_event *event,
                             struct hvd_error *err);

#endif
