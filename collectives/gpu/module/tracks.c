/* SPDX-License-Identifier: Apache-2.0 */
/* Several streams on which collectives run beside each other, each with communicators of
 * its own.
 *
 * NCCL's kernels wait for those of the other ranks, and hold a part of the GPU meanwhile.
 * NVIDIA promises that those of several communicators do not wait in a circle if all
 * ranks launch them in one order and the GPU begins them in it (what
 * NCCL_LAUNCH_ORDER_IMPLICIT of 2.26 sees to), or if all that may be under way at a time
 * fit on it. The launcher sees to the first half; but a stream whose input comes early
 * would overtake another. So each collective waits here until all that were launched
 * before it on other tracks could begin:
 *
 *   track 0   pack  eligible  ALLREDUCE . . . . unpack
 *                       |
 *   track 1   pack . . wait  eligible  ALLREDUCE . . .
 *
 * With that all GPUs get the collectives in the same order, and the oldest that has not
 * ended is under way on all of them. It waits for nothing that comes behind it: its input
 * is the framework's, whose streams wait for batches only that were launched before. And
 * what a function of NCCL waits for on the host, such as all of the device, was launched
 * on all ranks before. */
#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

static int create_event(struct hvd_gpu_device *device, CUevent *event,
                        struct hvd_error *err)
{
    int error = device->cuda->event_create(event, CU_EVENT_DISABLE_TIMING);

    if (error != CUDA_SUCCESS) {
        *event = NULL;
        return hvd_cuda_fail(device->cuda, "cuEventCreate", error, err);
    }
    return 0;
}

int hvd_tracks_open(struct hvd_gpu_device *device, struct hvd_error *err)
{
    int status;

    if (device->tracks == 1) {
        return 0;
    }
    status = create_event(device, &device->eligible, err);
    return status != 0 ? status : create_event(device, &device->track_end, err);
}

void hvd_tracks_close(struct hvd_gpu_device *device)
{
    if (device->eligible != NULL) {
        device->cuda->event_destroy(device->eligible);
    }
    if (device->track_end != NULL) {
        device->cuda->event_destroy(device->track_end);
    }
}

static int record(struct hvd_gpu_device *device, CUevent event, enum hvd_gpu_queue queue,
                  struct hvd_error *err)
{
    int error = device->cuda->event_record(event, device->streams[queue]);

    return error == CUDA_SUCCESS
               ? 0
               : hvd_cuda_fail(device->cuda, "cuEventRecord", error, err);
}

/* For where the event was recorded last, also if it is recorded again before that is
 * reached. */
static int follow(struct hvd_gpu_device *device, CUevent event, enum hvd_gpu_queue queue,
                  struct hvd_error *err)
{
    int error = device->cuda->stream_wait(device->streams[queue], event, 0);

    return error == CUDA_SUCCESS
               ? 0
               : hvd_cuda_fail(device->cuda, "cuStreamWaitEvent", error, err);
}

int hvd_tracks_line_up(struct hvd_gpu_device *device, enum hvd_gpu_queue queue,
                       struct hvd_error *err)
{
    int status = 0;

    /* Not recorded yet, it is waited for by nobody. */
    if (device->eligible_queue != queue) {
        status = follow(device, device->eligible, queue, err);
    }
    device->eligible_queue = queue;
    return status != 0 ? status : record(device, device->eligible, queue, err);
}

int hvd_tracks_follow(struct hvd_gpu_device *device, enum hvd_gpu_queue queue,
                      struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < device->tracks && status == 0; i++) {
        enum hvd_gpu_queue other = hvd_gpu_track_queue(i);

        if (other != queue) {
            status = record(device, device->track_end, other, err);
            status = status != 0 ? status : follow(device, device->track_end, queue, err);
        }
    }
    return status;
}
