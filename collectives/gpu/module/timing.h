/* SPDX-License-Identifier: Apache-2.0 */
/* Measures when steps run on the device, in the host's clock.
 *
 *   anchor    an event on an idle stream, and the host's time when the device reached
 *             it, known to some microseconds. It is replaced every second, because
 *             clocks drift and the driver returns times since the anchor as float
 *             milliseconds
 *   timing    events between the steps of a work; the driver gives their distance from
 *             the anchor
 *
 * The launcher calls all functions except create, read and destroy. The work's timing may
 * be NULL. A failure here is not an error: the work is not measured. */
#ifndef HVD_GPU_TIMING_H
#define HVD_GPU_TIMING_H

#include "collectives/gpu/gpu_module.h"

int hvd_timing_create(struct hvd_gpu_device *device, struct hvd_gpu_timing **out,
                      struct hvd_error *err);
int hvd_timing_read(struct hvd_gpu_timing *timing,
                    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS]);
void hvd_timing_destroy(struct hvd_gpu_timing *timing);

/* Call before and after the work's communicator is connected; no effect if it already
 * was. */
void hvd_timing_connects(struct hvd_gpu_work *work);
void hvd_timing_connected(struct hvd_gpu_work *work);

/* Call before each step is put on the stream, and after the last step. */
void hvd_timing_step(struct hvd_gpu_work *work, const struct hvd_gpu_step *step);
void hvd_timing_end(struct hvd_gpu_work *work);

/* Frees the device's anchor and stream for measurements. Call when the device is closed,
 * with its context current. */
void hvd_timing_finish_device(struct hvd_gpu_device *device);

#endif
