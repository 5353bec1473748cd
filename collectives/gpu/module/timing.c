/* SPDX-License-Identifier: Apache-2.0 */
/* Measures when steps run on the device, in the host's clock. */
#include "collectives/gpu/module/timing.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

/* An anchor older than this is replaced: the clocks of host and device drift apart by 1
 * to 50 us a second, and one second as a float in milliseconds is exact to 0.1 us. */
static const int64_t anchor_age_ns = 1000000000;

/* An anchor is accepted if its time is known to within anchor_good_ns, or after
 * anchor_tries attempts or anchor_patience_ns. If an idle stream takes longer than
 * anchor_timeout_ns to reach the event, the device is not measured, and the next attempt
 * comes only after anchor_age_ns. */
static const int64_t anchor_good_ns = 100000;
static const int anchor_tries = 5;
static const int64_t anchor_patience_ns = 10000000;
static const int64_t anchor_timeout_ns = 100000000;

struct hvd_gpu_anchor {
    /* number of references: by the device, and by timings that began at this anchor */
    _Atomic int owners;
    struct hvd_gpu_device *device;
    CUevent event;
    int64_t host_ns;
};

struct hvd_gpu_timing {
    struct hvd_gpu_device *device; /* the timing holds a reference to it */
    struct hvd_gpu_anchor *anchor; /* NULL: not measured */
    /* the beginning of each span, and the end of the last */
    CUevent events[HVD_GPU_MOST_SPANS + 1];
    /* kinds and steps; times are read from the events */
    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS];
    int count;
    bool has_ended;
    int64_t connects_ns, connected_ns; /* 0: the communicator was connected before */
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- anchors --- */

/* The device's context must be current. */
static void drop_anchor(struct hvd_gpu_anchor *anchor)
{
    if (anchor != NULL && atomic_fetch_sub(&anchor->owners, 1) == 1) {
        anchor->device->cuda->event_destroy(anchor->event);
        free(anchor);
    }
}

/* Records the event once. Returns the uncertainty of its time in ns, -1 if it failed. */
static int64_t try_anchor(struct hvd_gpu_anchor *anchor)
{
    const struct hvd_cuda *cuda = anchor->device->cuda;
    int64_t begin_ns = now_ns();
    int error = cuda->event_record(anchor->event, anchor->device->clock);

    while (error == CUDA_SUCCESS) {
        int64_t end_ns;

        error = cuda->event_query(anchor->event);
        end_ns = now_ns();
        if (error == CUDA_SUCCESS) {
            anchor->host_ns = begin_ns + (end_ns - begin_ns) / 2;
            return end_ns - begin_ns;
        }
        if (error == CUDA_ERROR_NOT_READY && end_ns - begin_ns < anchor_timeout_ns &&
            !atomic_load(&anchor->device->is_aborted)) {
            error = CUDA_SUCCESS;
            sched_yield();
        }
    }
    return -1;
}

static bool place_anchor(struct hvd_gpu_anchor *anchor)
{
    int64_t since_ns = now_ns(), exact_ns = 0;

    for (int i = 0; i < anchor_tries; i++) {
        exact_ns = try_anchor(anchor);
        if (exact_ns <= anchor_good_ns || now_ns() - since_ns > anchor_patience_ns) {
            break;
        }
    }
    return exact_ns >= 0;
}

static bool open_clock(struct hvd_gpu_device *device)
{
    int least = 0, greatest = 0;

    if (device->clock == NULL &&
        (device->cuda->priority_range(&least, &greatest) != CUDA_SUCCESS ||
         device->cuda->stream_create(&device->clock, CU_STREAM_NON_BLOCKING, greatest) !=
             CUDA_SUCCESS)) {
        device->clock = NULL;
    }
    return device->clock != NULL;
}

/* Replaces the device's anchor; there is none if that fails. */
static void renew_anchor(struct hvd_gpu_device *device)
{
    struct hvd_gpu_anchor *anchor = calloc(1, sizeof(*anchor));

    drop_anchor(device->anchor);
    device->anchor = NULL;
    device->anchor_tried_ns = now_ns();
    if (anchor == NULL || !open_clock(device) ||
        device->cuda->event_create(&anchor->event, 0) != CUDA_SUCCESS) {
        free(anchor);
        return;
    }
    atomic_init(&anchor->owners, 1);
    anchor->device = device;
    if (place_anchor(anchor)) {
        device->anchor = anchor;
    } else {
        drop_anchor(anchor);
    }
}

static bool take_anchor(struct hvd_gpu_timing *timing)
{
    struct hvd_gpu_device *device = timing->device;

    if (device->anchor_tried_ns == 0 ||
        now_ns() - device->anchor_tried_ns > anchor_age_ns) {
        renew_anchor(device);
    }
    if (device->anchor == NULL) {
        return false;
    }
    atomic_fetch_add(&device->anchor->owners, 1);
    timing->anchor = device->anchor;
    return true;
}

void hvd_timing_finish_device(struct hvd_gpu_device *device)
{
    drop_anchor(device->anchor);
    device->anchor = NULL;
    if (device->clock != NULL) {
        device->cuda->stream_destroy(device->clock);
        device->clock = NULL;
    }
}

/* --- a work --- */

int hvd_timing_create(struct hvd_gpu_device *device, struct hvd_gpu_timing **out,
                      struct hvd_error *err)
{
    struct hvd_gpu_timing *timing = calloc(1, sizeof(*timing));

    if (timing == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to time work on a GPU");
    }
    atomic_fetch_add(&device->owners, 1);
    timing->device = device;
    *out = timing;
    return 0;
}

void hvd_timing_destroy(struct hvd_gpu_timing *timing)
{
    bool entered;

    if (timing == NULL) {
        return;
    }
    entered = hvd_device_enter(timing->device, NULL) == 0;
    for (int i = 0; i <= HVD_GPU_MOST_SPANS; i++) {
        if (timing->events[i] != NULL) {
            timing->device->cuda->event_destroy(timing->events[i]);
        }
    }
    drop_anchor(timing->anchor);
    if (entered) {
        hvd_device_leave(timing->device);
    }
    hvd_device_drop(timing->device);
    free(timing);
}

void hvd_timing_connects(struct hvd_gpu_work *work)
{
    if (work->timing != NULL && hvd_comm_handle(work->comm) == NULL) {
        work->timing->connects_ns = now_ns();
    }
}

void hvd_timing_connected(struct hvd_gpu_work *work)
{
    if (work->timing != NULL && work->timing->connects_ns != 0) {
        work->timing->connected_ns = now_ns();
    }
}

static enum hvd_gpu_span_kind span_of(enum hvd_gpu_step_kind kind)
{
    switch (kind) {
    case HVD_GPU_FOLLOW:
        return HVD_GPU_AWAITS;
    case HVD_GPU_PUSH:
    case HVD_GPU_ALLREDUCE:
    case HVD_GPU_ALLGATHER:
    case HVD_GPU_BROADCAST:
    case HVD_GPU_REDUCESCATTER:
    case HVD_GPU_REDUCE:
    case HVD_GPU_SEND:
    case HVD_GPU_RECV:
    case HVD_GPU_GROUP:
    case HVD_GPU_GROUP_END:
        return HVD_GPU_COLLECTS;
    default:
        return HVD_GPU_MOVES;
    }
}

/* Records an event that begins the next span or ends the last. */
static bool record_span(struct hvd_gpu_work *work)
{
    struct hvd_gpu_timing *timing = work->timing;
    const struct hvd_cuda *cuda = timing->device->cuda;
    CUevent *event = &timing->events[timing->count];

    if (cuda->event_create(event, 0) != CUDA_SUCCESS) {
        *event = NULL;
        return false;
    }
    return cuda->event_record(*event, timing->device->streams[work->queue]) ==
           CUDA_SUCCESS;
}

static void end_measuring(struct hvd_gpu_work *work)
{
    work->timing->count = 0;
    work->timing = NULL;
}

static void begin_span(struct hvd_gpu_work *work, const struct hvd_gpu_step *step)
{
    struct hvd_gpu_timing *timing = work->timing;

    if ((timing->anchor == NULL && !take_anchor(timing)) || !record_span(work)) {
        end_measuring(work);
        return;
    }
    timing->spans[timing->count++] =
        (struct hvd_gpu_span){.kind = span_of(step->kind), .step = step->kind};
}

void hvd_timing_step(struct hvd_gpu_work *work, const struct hvd_gpu_step *step)
{
    struct hvd_gpu_timing *timing = work->timing;
    struct hvd_gpu_span *last;

    /* HVD_GPU_POISON counts as a part of the step before it. */
    if (timing == NULL || step->kind == HVD_GPU_POISON) {
        return;
    }
    last = timing->count > 0 ? &timing->spans[timing->count - 1] : NULL;
    if (last == NULL ||
        (span_of(step->kind) != last->kind && timing->count < HVD_GPU_MOST_SPANS)) {
        begin_span(work, step);
    } else if (last->step == HVD_GPU_GROUP) {
        last->step = step->kind; /* name the span by the first step in the group */
    }
}

void hvd_timing_end(struct hvd_gpu_work *work)
{
    if (work->timing != NULL && work->timing->count > 0) {
        work->timing->has_ended = record_span(work);
    }
}

/* --- reading --- */

/* Computes the time of event number i in the host's clock. */
static bool time_of(const struct hvd_gpu_timing *timing, int i, int64_t *at_ns)
{
    float ms = 0;

    if (timing->device->cuda->event_elapsed(&ms, timing->anchor->event,
                                            timing->events[i]) != CUDA_SUCCESS) {
        return false;
    }
    *at_ns = timing->anchor->host_ns + (int64_t)((double)ms * 1e6);
    return true;
}

static int read_spans(const struct hvd_gpu_timing *timing, struct hvd_gpu_span *spans,
                      int room)
{
    int count = timing->count < room ? timing->count : room;
    int64_t at_ns;

    if (!timing->has_ended || !time_of(timing, 0, &at_ns)) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        spans[i] = timing->spans[i];
        spans[i].begin_ns = at_ns;
        if (!time_of(timing, i + 1, &at_ns)) {
            return 0;
        }
        spans[i].end_ns = at_ns;
    }
    return count;
}

int hvd_timing_read(struct hvd_gpu_timing *timing,
                    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS])
{
    int count = 0, connects = 0;

    if (timing->connected_ns != 0) {
        spans[connects++] = (struct hvd_gpu_span){.kind = HVD_GPU_CONNECTS,
                                                  .begin_ns = timing->connects_ns,
                                                  .end_ns = timing->connected_ns};
    }
    if (hvd_device_enter(timing->device, NULL) == 0) {
        count = read_spans(timing, spans + connects, HVD_GPU_MOST_SPANS - connects);
        hvd_device_leave(timing->device);
    }
    return count > 0 ? connects + count : 0;
}
