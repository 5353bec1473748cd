/* SPDX-License-Identifier: Apache-2.0 */
/* When the device did what, by the host's clock.
 *
 *   anchor      an event on a stream where nothing else is, and the host's time when the device came
 *               there, known to some microseconds; a new one when a second has gone by, for clocks
 *               drift, and the driver counts from it in floats
 *   a timing    events between the steps of a work, as far from its anchor as the driver says
 *
 * All but create, read and destroy are the launcher's, on a work whose timing may be
 * NULL. What fails here is not told: then the work is not measured. */
#ifndef HVD_GPU_TIMING_H
#define HVD_GPU_TIMING_H

#include "collectives/gpu/gpu_module.h"

int hvd_timing_create(struct hvd_gpu_device *device, struct hvd_gpu_timing **out,
                      struct hvd_error *err);
int hvd_timing_read(struct hvd_gpu_timing *timing,
                    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS]);
void hvd_timing_destroy(struct hvd_gpu_timing *timing);

/* Around the connecting of the work's communicator, which mostly is connected already. */
void hvd_timing_connects(struct hvd_gpu_work *work);
void hvd_timing_connected(struct hvd_gpu_work *work);

/* This step is next on the stream; the last one is there. */
void hvd_timing_step(struct hvd_gpu_work *work, const struct hvd_gpu_step *step);
void hvd_timing_end(struct hvd_gpu_work *work);

/* The device is closed; its context is the thread's. */
void hvd_timing_finish_device(struct hvd_gpu_device *device);

#endif
