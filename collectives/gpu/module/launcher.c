/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that puts work on the device's streams, one work after the other.
 *
 * Before 2.14, any function of NCCL may block until other ranks call theirs. Therefore
 * only this thread calls NCCL, and an abort has a thread of its own: ncclCommAbort
 * releases a blocked launcher, except from ncclCommInitRank. With later versions the
 * launcher polls, and aborts its communicators itself. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/timing.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/thread.h"

/* How long the launcher may take to return from NCCL by itself before another thread
 * aborts its communicators. */
static const int grace_ms = 300;

/* Interval at which the launcher polls communicators that are leaving: those for which
 * hvd_comm_destroy was called, and that have not ended. */
static const int look_ms = 5;

/* Number of polls while the device stops: other ranks may never answer. */
static const int last_looks = 200;

static void end_work(struct hvd_gpu_device *device, struct hvd_gpu_work *work, int status)
{
    atomic_store_explicit(&work->status, status, memory_order_release);
    device->wake(device->context);
}

/* Work behind a failed one is refused: it would not wait for the missing result, and
 * other ranks would take its output for valid. */
static int refuse_work(const struct hvd_gpu_device *device, struct hvd_gpu_work *work)
{
    if (device->failed != 0) {
        work->error = device->failure;
        return device->failed;
    }
    return atomic_load(&device->is_aborted)
               ? hvd_fail(&work->error, HVD_ERR_STATE, "the job has ended")
               : 0;
}

static int begin_work(struct hvd_gpu_device *device, struct hvd_gpu_work *work)
{
    int status = 0;

    if (work->comm != NULL) {
        work->comm->queue = work->queue;
        hvd_timing_connects(work);
        status = hvd_comm_connect(work->comm, &work->error);
        hvd_timing_connected(work);
    }
    return status != 0 ? status : hvd_steps_run(device, work);
}

static int run_work(struct hvd_gpu_device *device, struct hvd_gpu_work *work)
{
    int status = refuse_work(device, work);

    if (status == 0) {
        status = begin_work(device, work);
    }
    if (status < 0 && device->failed == 0) {
        device->failed = status;
        device->failure = work->error;
    }
    return status;
}

/* --- communicators that are leaving --- */

/* The lock is held. */
static void forget_comm(struct hvd_gpu_device *device, struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_comm **at = &device->comms;

    while (*at != comm) {
        at = &(*at)->next;
    }
    *at = comm->next;
    device->looks -= comm->wants_look ? 1 : 0;
    free(comm);
}

/* The lock is held. */
static void look_for_errors(struct hvd_gpu_device *device)
{
    for (struct hvd_gpu_comm *comm = device->comms;
         comm != NULL && device->looks > 0 && !device->is_aborting; comm = comm->next) {
        if (comm->wants_look) {
            hvd_comm_look(comm);
        }
    }
}

/* Advances the communicators that are leaving, without waiting. The lock is held on entry
 * and return. An abort also walks over all communicators, and has priority. */
static void look_at_leaving(struct hvd_gpu_device *device)
{
    struct hvd_gpu_comm *comm = device->comms, *next;

    if (device->leaving == 0) {
        return;
    }
    device->is_busy = true;
    for (; comm != NULL && !device->is_aborting; comm = next) {
        bool has_ended = false;

        if (comm->is_leaving && !comm->has_left) {
            pthread_mutex_unlock(&device->lock);
            has_ended = hvd_comm_leave(comm);
            pthread_mutex_lock(&device->lock);
            device->leaving -= comm->has_left ? 1 : 0;
        }
        next = comm->next;
        if (has_ended && !device->is_aborting) {
            forget_comm(device, comm);
        }
    }
    device->is_busy = false;
    pthread_cond_broadcast(&device->changed);
}

/* Ends the communicators that are leaving, as far as possible, when the device stops. The
 * lock is not held. */
static void finish_leaving(struct hvd_gpu_device *device)
{
    const struct timespec moment = {.tv_nsec = (long)look_ms * 1000000};
    int looks = last_looks;

    for (struct hvd_gpu_comm *comm = device->comms; comm != NULL; comm = comm->next) {
        while (comm->is_leaving && !comm->has_left && !hvd_comm_leave(comm) &&
               !comm->has_left && --looks > 0 && !atomic_load(&device->is_aborted)) {
            nanosleep(&moment, NULL);
        }
    }
}

/* Waits until something changes or it is time to poll again. The lock is held. */
static void wait_for_change(struct hvd_gpu_device *device)
{
    if (device->leaving == 0 || device->is_aborting) {
        pthread_cond_wait(&device->changed, &device->lock);
    } else {
        struct timespec until = hvd_device_after(look_ms);

        pthread_cond_timedwait(&device->changed, &device->lock, &until);
    }
}

/* Waits for the next work and returns it; NULL once the device stops. The lock is
 * held. */
static struct hvd_gpu_work *take_work(struct hvd_gpu_device *device)
{
    struct hvd_gpu_work *work;

    look_at_leaving(device);
    look_for_errors(device);
    while (device->first == NULL && !device->must_stop) {
        wait_for_change(device);
        look_at_leaving(device);
        look_for_errors(device);
    }
    work = device->first;
    if (work != NULL) {
        device->first = work->next;
        if (device->first == NULL) {
            device->end = &device->first;
        }
    }
    device->is_busy = work != NULL;
    return work;
}

/* Ends all communicators, after a running abort is complete. The lock is held. */
static void end_comms(struct hvd_gpu_device *device)
{
    while (device->is_aborting && !device->has_aborted) {
        pthread_cond_wait(&device->changed, &device->lock);
    }
    pthread_mutex_unlock(&device->lock);
    hvd_comm_limit_ends(device);
    finish_leaving(device);
    for (struct hvd_gpu_comm *comm = device->comms; comm != NULL; comm = comm->next) {
        if (atomic_load(&device->is_aborted)) {
            hvd_comm_abort(comm);
        } else {
            hvd_comm_end(comm);
        }
        hvd_event_destroy(comm->last_use);
        comm->last_use = NULL;
    }
    pthread_mutex_lock(&device->lock);
}

static void *run_launcher(void *arg)
{
    struct hvd_gpu_device *device = arg;
    struct hvd_error failure = {0};
    int entered = hvd_device_enter(device, &failure);
    struct hvd_gpu_work *work;

    pthread_mutex_lock(&device->lock);
    while ((work = take_work(device)) != NULL) {
        pthread_mutex_unlock(&device->lock);
        if (entered != 0) {
            work->error = failure;
        }
        end_work(device, work, entered != 0 ? entered : run_work(device, work));
        pthread_mutex_lock(&device->lock);
        device->is_busy = false;
        pthread_cond_broadcast(&device->changed);
    }
    end_comms(device);
    device->has_stopped = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    if (entered == 0) {
        hvd_device_leave(device);
    }
    return NULL;
}

int hvd_launcher_start(struct hvd_gpu_device *device, struct hvd_error *err)
{
    int error = hvd_thread_start(&device->launcher, run_launcher, device);

    if (error != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot start a thread for the GPU: %s",
                        strerror(error));
    }
    device->has_launcher = true;
    return 0;
}

void hvd_launcher_submit(struct hvd_gpu_device *device, struct hvd_gpu_work *work)
{
    atomic_store(&work->status, HVD_INPROGRESS);
    work->next = NULL;
    pthread_mutex_lock(&device->lock);
    *device->end = work;
    device->end = &work->next;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

static void *abort_comm(void *arg)
{
    struct hvd_gpu_comm *comm = arg;
    bool entered = hvd_device_enter(comm->device, NULL) == 0;

    hvd_comm_abort(comm);
    if (entered) {
        hvd_device_leave(comm->device);
    }
    return NULL;
}

/* Aborts all communicators in parallel: ncclCommAbort waits for the communicator's work
 * on the device, which may be queued behind work of another communicator that waits for a
 * dead rank. */
static void *abort_comms(void *arg)
{
    struct hvd_gpu_device *device = arg;

    pthread_mutex_lock(&device->lock);
    hvd_device_await(device, &device->is_busy, false, grace_ms);
    pthread_mutex_unlock(&device->lock);
    for (struct hvd_gpu_comm *comm = device->comms; comm != NULL; comm = comm->next) {
        comm->has_aborter = hvd_comm_handle(comm) != NULL &&
                            hvd_thread_start(&comm->aborter, abort_comm, comm) == 0;
    }
    for (struct hvd_gpu_comm *comm = device->comms; comm != NULL; comm = comm->next) {
        if (comm->has_aborter) {
            pthread_join(comm->aborter, NULL);
        } else {
            abort_comm(comm);
        }
    }
    pthread_mutex_lock(&device->lock);
    device->has_aborted = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

void hvd_launcher_abort(struct hvd_gpu_device *device)
{
    bool is_first;

    atomic_store(&device->is_aborted, true);
    hvd_kernels_tell_abort(&device->kernels); /* before collectives end by the abort */
    pthread_mutex_lock(&device->lock);
    is_first = !device->is_aborting;
    device->is_aborting = true;
    pthread_mutex_unlock(&device->lock);
    if (!is_first) {
        return;
    }
    device->has_aborter = hvd_thread_start(&device->aborter, abort_comms, device) == 0;
    if (!device->has_aborter) {
        abort_comms(device);
    }
}

static void end_thread(pthread_t thread, bool has_ended)
{
    if (has_ended) {
        pthread_join(thread, NULL);
    } else {
        pthread_detach(thread);
    }
}

bool hvd_launcher_stop(struct hvd_gpu_device *device, int timeout_ms)
{
    const int64_t end_ns = hvd_clock_ns() + timeout_ms * INT64_C(1000000);
    bool stopped;

    if (!device->has_launcher) {
        return true;
    }
    pthread_mutex_lock(&device->lock);
    device->must_stop = true;
    pthread_cond_broadcast(&device->changed);
    stopped = hvd_device_await(device, &device->has_stopped, true, timeout_ms);
    if (stopped) {
        const int64_t left_ns = end_ns - hvd_clock_ns();

        stopped = hvd_device_await(device, &device->is_freeing, false,
                                   left_ns > 0 ? (int)(left_ns / 1000000) : 0);
    }
    pthread_mutex_unlock(&device->lock);
    end_thread(device->launcher, stopped);
    if (device->has_aborter) {
        end_thread(device->aborter, stopped);
    }
    device->has_launcher = false;
    return stopped;
}
