/* SPDX-License-Identifier: Apache-2.0 */
/* When the timeline (timeline.h) begins and ends. */
#ifndef HVD_RECORDING_H
#define HVD_RECORDING_H

#include <pthread.h>

#include "gpu_binding/base/error.h"

struct hvd_engine;

struct hvd_recording {
    pthread_mutex_t
        lock; /* taken before the progress lock: one call about the timeline */
};

void hvd_recording_init(struct hvd_recording *recording);
void hvd_recording_finish(struct hvd_recording *recording);

/* The timeline of engine->timeline, recording if the environment says so; profilers' ranges. */
int hvd_recording_open(struct hvd_engine *engine, struct hvd_error *err);

/* Batches that start are recorded. */
void hvd_recording_watch(struct hvd_engine *engine);

#endif
