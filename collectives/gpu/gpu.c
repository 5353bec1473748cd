/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of this rank: opened once, and what is on its streams. */
#include "collectives/gpu/gpu.h"

#include <stdlib.h>
#include <time.h>

#include "collectives/gpu/gpu_cross.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/gpu/gpu_trace.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

/* How long a device, or NCCL, may take to let go. */
static const int64_t let_go_ns = 3000000000;

/* How often to look at the device: somebody waits, or nobody does. An interrupt from it
 * would hold up its stream. */
static const int64_t look_waited_ns = 50000;
static const int64_t look_ns = 20000000;

/* How often NCCL is asked whether something has failed. */
static const int64_t check_ns = 100000000;

int hvd_gpu_create(const struct hvd_gpu_config *config, struct hvd_gpu **out,
                   struct hvd_error *err)
{
    struct hvd_gpu *gpu = calloc(1, sizeof(*gpu));

    if (gpu == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    gpu->config = *config;
    pthread_mutex_init(&gpu->lock, NULL);
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        gpu->last[i] = &gpu->flying[i];
    }
    gpu->turn = 1;
    *out = gpu;
    return 0;
}

bool hvd_gpu_stop(struct hvd_gpu *gpu)
{
    bool stopped = true;

    if (gpu != NULL && gpu->pool != NULL) {
        stopped = gpu->pool->module->stop(gpu->pool->device, HVD_GPU_STOP_MS);
        if (!stopped) {
            hvd_log(HVD_LOG_WARN,
                    "GPU %d does not let go within %d s: its memory stays in use until "
                    "the process ends",
                    gpu->device, HVD_GPU_STOP_MS / 1000);
        }
        stopped = stopped && !gpu->is_stuck;
    }
    return stopped;
}

static void drop_flying(struct hvd_gpu *gpu)
{
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        while (gpu->flying[i] != NULL) {
            struct hvd_gpu_mark *mark = gpu->flying[i];

            gpu->flying[i] = mark->next;
            hvd_refcount_drop(&mark->refcount);
        }
    }
}

/* Those that are in use for ever. */
static struct hvd_gpu *left;

void hvd_gpu_destroy(struct hvd_gpu *gpu, bool has_stopped)
{
    if (gpu == NULL) {
        return;
    }
    while (gpu->peers != NULL) {
        hvd_gpu_forget_peers(gpu, gpu->peers->set);
    }
    if (!has_stopped) {
        pthread_mutex_lock(&gpu->lock);
        gpu->is_left = true;
        pthread_mutex_unlock(&gpu->lock);
        gpu->left_before = left;
        left = gpu;
        return;
    }
    drop_flying(gpu);
    hvd_refcount_drop(gpu->pack != NULL ? &gpu->pack->refcount : NULL);
    hvd_refcount_drop(gpu->pool != NULL ? &gpu->pool->refcount : NULL);
    pthread_mutex_destroy(&gpu->lock);
    free(gpu);
}

/* --- marks --- */

int hvd_gpu_mark_input(struct hvd_gpu *gpu, void *stream, struct hvd_refcount **out,
                       struct hvd_error *err)
{
    struct hvd_gpu_mark *mark;
    int status = hvd_gpu_mark_create(gpu->pool, &mark, err);

    if (status != 0) {
        return status;
    }
    status = gpu->pool->module->event_record(mark->event, stream, err);
    if (status != 0) {
        hvd_refcount_drop(&mark->refcount);
        return status;
    }
    *out = &mark->refcount;
    return 0;
}

int hvd_gpu_mark_wait(const struct hvd_refcount *refcount, void *stream,
                      struct hvd_error *err)
{
    const struct hvd_gpu_mark *mark = (const struct hvd_gpu_mark *)refcount;

    return mark->pool->module->event_wait(mark->event, stream, err);
}

uint64_t hvd_gpu_number(struct hvd_gpu *gpu)
{
    return ++gpu->numbers;
}

void hvd_gpu_launched(struct hvd_gpu *gpu, enum hvd_gpu_queue queue,
                      struct hvd_gpu_mark *mark)
{
    hvd_refcount_keep(&mark->refcount);
    mark->next = NULL;
    *gpu->last[queue] = mark;
    gpu->last[queue] = &mark->next;
}

void hvd_gpu_park(struct hvd_entry *entry)
{
    struct hvd_gpu_mark *mark = (struct hvd_gpu_mark *)entry->done;

    entry->next = mark->entries;
    mark->entries = entry;
}

/* --- landing --- */

static void land(struct hvd_gpu *gpu, int queue, hvd_gpu_landed *landed, void *context,
                 int status, const char *text)
{
    struct hvd_gpu_mark *mark = gpu->flying[queue];

    gpu->flying[queue] = mark->next;
    if (gpu->flying[queue] == NULL) {
        gpu->last[queue] = &gpu->flying[queue];
    }
    if (status == 0) {
        hvd_gpu_trace_collect(mark->trace);
    }
    while (mark->entries != NULL) {
        struct hvd_entry *entry = mark->entries;

        mark->entries = entry->next;
        landed(context, entry, status, text); /* it may be gone now */
    }
    hvd_gpu_mark_clear(mark);
    hvd_refcount_drop(&mark->refcount);
}

static bool is_launching(const struct hvd_gpu *gpu)
{
    for (const struct hvd_gpu_job *job = gpu->jobs; job != NULL; job = job->next) {
        if (hvd_gpu_job_is_held(job)) {
            return true;
        }
    }
    return false;
}

/* Not while the launcher may be in NCCL: it looks by itself. */
static int check_peers(struct hvd_gpu *gpu, int64_t now_ns, struct hvd_error *err)
{
    int status = 0;

    if (now_ns - gpu->checked_ns < check_ns || is_launching(gpu)) {
        return 0;
    }
    gpu->checked_ns = now_ns;
    for (struct hvd_gpu_peers *peers = gpu->peers; peers != NULL && status == 0;
         peers = peers->next) {
        if (peers->comm != NULL) {
            status = gpu->pool->module->comm_check(peers->comm, err);
        }
        if (peers->node_comm != NULL && status == 0) {
            status = gpu->pool->module->comm_check(peers->node_comm, err);
        }
    }
    return status;
}

int hvd_gpu_progress(struct hvd_gpu *gpu, hvd_gpu_landed *landed, void *context,
                     bool *moved, struct hvd_error *err)
{
    int status = 0;

    if (gpu->has_failed || (hvd_gpu_is_idle(gpu) && gpu->jobs == NULL)) {
        return 0;
    }
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        while (status == 0 && gpu->flying[i] != NULL) {
            status = gpu->pool->module->event_test(gpu->flying[i]->event, err);
            if (status == 0) {
                land(gpu, i, landed, context, 0, "");
                *moved = true;
            }
        }
        status = status == HVD_INPROGRESS ? 0 : status;
    }
    return status != 0 ? status : check_peers(gpu, hvd_clock_ns(), err);
}

int64_t hvd_gpu_deadline(const struct hvd_gpu *gpu, bool is_waited, int64_t now_ns)
{
    if (gpu == NULL || gpu->has_failed) {
        return -1;
    }
    if (gpu->waiting > 0 || (is_waited && !hvd_gpu_is_idle(gpu))) {
        return now_ns + look_waited_ns;
    }
    return hvd_gpu_is_idle(gpu) ? -1 : now_ns + look_ns;
}

bool hvd_gpu_is_idle(const struct hvd_gpu *gpu)
{
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        if (gpu->flying[i] != NULL) {
            return false;
        }
    }
    return true;
}

/* The last on each stream has come, or will never come; so what was still to be put there. */
static bool has_let_go(const struct hvd_gpu *gpu)
{
    for (const struct hvd_gpu_job *job = gpu->jobs; job != NULL; job = job->next) {
        if (hvd_gpu_job_reached(job, NULL) == HVD_INPROGRESS) {
            return false;
        }
    }
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        for (struct hvd_gpu_mark *mark = gpu->flying[i]; mark != NULL;
             mark = mark->next) {
            if (gpu->pool->module->event_test(mark->event, NULL) == HVD_INPROGRESS) {
                return false;
            }
        }
    }
    return true;
}

/* What the device still uses is used for ever. */
static void leave_behind(struct hvd_gpu_mark *mark)
{
    mark->rooms = NULL;
    mark->litter = NULL;
}

/* Waits for an opening that is under way. */
static bool has_opened(struct hvd_gpu *gpu)
{
    bool opened;

    pthread_mutex_lock(&gpu->lock);
    opened = gpu->pool != NULL;
    pthread_mutex_unlock(&gpu->lock);
    return opened;
}

void hvd_gpu_fail(struct hvd_gpu *gpu, hvd_gpu_landed *landed, void *context, int status,
                  const char *text)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int64_t until_ns = hvd_clock_ns() + let_go_ns;
    bool is_free;

    if (gpu == NULL || gpu->has_failed || !has_opened(gpu)) {
        return;
    }
    gpu->has_failed = true;
    gpu->pool->module->abort(gpu->pool->device);
    while (!(is_free = has_let_go(gpu)) && hvd_clock_ns() < until_ns) {
        nanosleep(&moment, NULL);
    }
    gpu->is_stuck = !is_free;
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        while (gpu->flying[i] != NULL) {
            if (!is_free) {
                leave_behind(gpu->flying[i]);
            }
            land(gpu, i, landed, context, status, text);
        }
    }
}

/* --- process sets --- */

struct hvd_gpu_peers *hvd_gpu_find_peers(const struct hvd_gpu *gpu, int set)
{
    struct hvd_gpu_peers *peers = gpu->peers;

    while (peers != NULL && peers->set != set) {
        peers = peers->next;
    }
    return peers;
}

static void end_comm(struct hvd_gpu *gpu, struct hvd_gpu_comm *comm)
{
    if (comm != NULL) {
        gpu->pool->module->comm_destroy(comm);
    }
}

void hvd_gpu_forget_peers(struct hvd_gpu *gpu, int set)
{
    for (struct hvd_gpu_peers **at = &gpu->peers; *at != NULL; at = &(*at)->next) {
        struct hvd_gpu_peers *peers = *at;

        if (peers->set == set) {
            *at = peers->next;
            end_comm(gpu, peers->comm);
            end_comm(gpu, peers->node_comm);
            hvd_gpu_cross_destroy(peers->cross);
            free(peers);
            return;
        }
    }
}
