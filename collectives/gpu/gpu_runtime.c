/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of this rank: opens and closes it, and tracks the batches in flight. */
#include "collectives/gpu/gpu_runtime.h"

#include <stdlib.h>
#include <time.h>

#include "pmix_boot/boot.h"
#include "collectives/request/request.h"
#include "collectives/gpu/gpu_inter_node.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/gpu/gpu_load.h"
#include "collectives/gpu/gpu_trace.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/thread.h"

/* How long hvd_gpu_fail waits for the device and NCCL. */
static const int64_t stop_ns = 3000000000;

/* How often to poll the device while a thread waits, and how often otherwise. A callback
 * of the device is not used: it would delay its stream. */
static const int64_t look_waited_ns = 50000;
static const int64_t look_ns = 20000000;

/* How often NCCL is asked for errors. */
static const int64_t check_ns = 100000000;

int hvd_gpu_create(const struct hvd_gpu_config *config, struct hvd_gpu_runtime **out,
                   struct hvd_error *err)
{
    struct hvd_gpu_runtime *gpu = calloc(1, sizeof(*gpu));

    if (gpu == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    gpu->config = *config;
    pthread_mutex_init(&gpu->lock, NULL);
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        gpu->last[i] = &gpu->in_flight[i];
    }
    gpu->turn = 1;
    *out = gpu;
    return 0;
}

bool hvd_gpu_stop(struct hvd_gpu_runtime *gpu)
{
    bool stopped = true;

    if (gpu != NULL && gpu->pool != NULL) {
        stopped = gpu->pool->module->stop(gpu->pool->device, HVD_GPU_STOP_MS);
        if (!stopped) {
            hvd_log(HVD_LOG_WARN,
                    "GPU %d has not stopped within %d s: its memory stays in use until "
                    "the process ends",
                    gpu->device, HVD_GPU_STOP_MS / 1000);
        }
        stopped = stopped && !gpu->is_stuck;
    }
    return stopped;
}

static void drop_in_flight(struct hvd_gpu_runtime *gpu)
{
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        while (gpu->in_flight[i] != NULL) {
            struct hvd_gpu_mark *mark = gpu->in_flight[i];

            gpu->in_flight[i] = mark->next;
            hvd_refcount_drop(&mark->refcount);
        }
    }
}

/* Runtimes whose device did not stop. They are never freed. */
static struct hvd_gpu_runtime *abandoned;

void hvd_gpu_destroy(struct hvd_gpu_runtime *gpu, bool has_stopped)
{
    if (gpu == NULL) {
        return;
    }
    while (gpu->sets != NULL) {
        hvd_gpu_set_destroy(gpu, gpu->sets);
    }
    if (!has_stopped) {
        pthread_mutex_lock(&gpu->lock);
        gpu->is_abandoned = true;
        pthread_mutex_unlock(&gpu->lock);
        gpu->next_abandoned = abandoned;
        abandoned = gpu;
        return;
    }
    drop_in_flight(gpu);
    hvd_gpu_buffer_drop(gpu->pack);
    hvd_refcount_drop(gpu->pool != NULL ? &gpu->pool->refcount : NULL);
    pthread_mutex_destroy(&gpu->lock);
    free(gpu);
}

/* --- opening --- */

static void wake_driver(void *context)
{
    struct hvd_gpu_runtime *gpu = context;

    pthread_mutex_lock(&gpu->lock);
    if (!gpu->is_abandoned) {
        gpu->config.wake(gpu->config.context);
    }
    pthread_mutex_unlock(&gpu->lock);
}

/* The lock is held. */
static int open_device(struct hvd_gpu_runtime *gpu, int device, struct hvd_error *err)
{
    const struct hvd_gpu_opening opening = {
        .device = device, .wake = wake_driver, .context = gpu};
    const struct hvd_gpu_module *module = hvd_gpu_load(err);
    struct hvd_gpu_device *opened = NULL;
    sigset_t before;
    int status;

    if (module == NULL) {
        return HVD_ERR_UNSUPPORTED;
    }
    hvd_thread_block_signals(&before); /* for the threads that CUDA starts */
    status = module->open(&opening, &opened, err);
    hvd_thread_restore_signals(&before);
    if (status != 0) {
        return status;
    }
    status = hvd_gpu_pool_create(module, opened, &gpu->pool, err);
    if (status != 0) {
        module->stop(opened, HVD_GPU_STOP_MS);
        module->close(opened);
        return status;
    }
    gpu->device = device;
    atomic_store(&gpu->is_open, true);
    hvd_log(HVD_LOG_INFO, "opened GPU %d through %s%s%s", device, hvd_gpu_loaded_from(),
            module->no_kernels(opened) != NULL ? ", without kernels: " : "",
            module->no_kernels(opened) != NULL ? module->no_kernels(opened) : "");
    return 0;
}

int hvd_gpu_open(struct hvd_gpu_runtime *gpu, int device, struct hvd_error *err)
{
    int status = 0;

    pthread_mutex_lock(&gpu->lock);
    if (gpu->pool == NULL) {
        status = open_device(gpu, device, err);
    } else if (gpu->device != device) {
        status =
            hvd_fail(err, HVD_ERR_UNSUPPORTED,
                     "the tensor is on GPU %d, but this rank has used GPU %d before: hvd "
                     "uses one GPU per process; choose it with "
                     "torch.cuda.set_device(hvd.local_rank())",
                     device, gpu->device);
    }
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

int hvd_gpu_open_default(struct hvd_gpu_runtime *gpu, struct hvd_error *err)
{
    const struct hvd_layout *layout = &gpu->config.boot->layout;
    const struct hvd_gpu_module *module;
    int status = 0, count;

    pthread_mutex_lock(&gpu->lock);
    if (gpu->pool == NULL) {
        module = hvd_gpu_load(err);
        count = module != NULL ? module->count(err) : HVD_ERR_UNSUPPORTED;
        if (count == 0) {
            count = hvd_fail(err, HVD_ERR_UNSUPPORTED, "this process sees no GPU");
        }
        status = count < 0
                     ? count
                     : open_device(
                           gpu, layout->local_rank[gpu->config.boot->rank] % count, err);
    }
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

bool hvd_gpu_is_open(const struct hvd_gpu_runtime *gpu)
{
    return gpu != NULL && atomic_load(&gpu->is_open);
}

const _Atomic bool *hvd_gpu_open_flag(const struct hvd_gpu_runtime *gpu)
{
    return &gpu->is_open;
}

bool hvd_gpu_is_short(struct hvd_gpu_runtime *gpu)
{
    return hvd_gpu_is_open(gpu) && hvd_gpu_pool_is_short(gpu->pool);
}

void hvd_gpu_freed(struct hvd_gpu_runtime *gpu)
{
    if (hvd_gpu_is_open(gpu)) {
        hvd_gpu_pool_freed(gpu->pool);
    }
}

/* --- marks --- */

int hvd_gpu_mark_input(struct hvd_gpu_runtime *gpu, void *stream,
                       struct hvd_refcount **out, struct hvd_error *err)
{
    struct hvd_gpu_mark *mark;
    int status = hvd_gpu_mark_create(gpu->pool, &mark, err);

    if (status != 0) {
        return status;
    }
    status = gpu->pool->module->event_record(mark->event, stream, &mark->position, err);
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

uint64_t hvd_gpu_number(struct hvd_gpu_runtime *gpu)
{
    return ++gpu->numbers;
}

void hvd_gpu_launched(struct hvd_gpu_runtime *gpu, enum hvd_gpu_queue queue,
                      struct hvd_gpu_mark *mark)
{
    hvd_refcount_keep(&mark->refcount);
    mark->next = NULL;
    *gpu->last[queue] = mark;
    gpu->last[queue] = &mark->next;
    atomic_fetch_add(&gpu->in_flight_count, 1);
}

void hvd_gpu_park(struct hvd_entry *entry)
{
    struct hvd_gpu_mark *mark = (struct hvd_gpu_mark *)entry->done;

    entry->next = mark->entries;
    mark->entries = entry;
}

/* --- completion --- */

static void complete_mark(struct hvd_gpu_runtime *gpu, int queue,
                          hvd_gpu_completed *completed, void *context, int status,
                          const char *text)
{
    struct hvd_gpu_mark *mark = gpu->in_flight[queue];

    gpu->in_flight[queue] = mark->next;
    if (gpu->in_flight[queue] == NULL) {
        gpu->last[queue] = &gpu->in_flight[queue];
    }
    atomic_fetch_sub(&gpu->in_flight_count, 1); /* before a waiter is told */
    if (status == 0) {
        hvd_gpu_trace_collect(mark->trace);
    }
    while (mark->entries != NULL) {
        struct hvd_entry *entry = mark->entries;

        mark->entries = entry->next;
        completed(context, entry, status, text); /* the callback may free the entry */
    }
    hvd_gpu_mark_clear(mark);
    hvd_refcount_drop(&mark->refcount);
}

static int check_comms(struct hvd_gpu_runtime *gpu, int64_t now_ns, struct hvd_error *err)
{
    int status = 0;

    if (now_ns - gpu->checked_ns < check_ns) {
        return 0;
    }
    gpu->checked_ns = now_ns;
    for (struct hvd_gpu_set *set = gpu->sets; set != NULL && status == 0;
         set = set->next) {
        if (set->comm != NULL) {
            status = gpu->pool->module->comm_check(set->comm, err);
        }
        if (set->node_comm != NULL && status == 0) {
            status = gpu->pool->module->comm_check(set->node_comm, err);
        }
    }
    return status;
}

int hvd_gpu_progress(struct hvd_gpu_runtime *gpu, hvd_gpu_completed *completed,
                     void *context, bool *moved, struct hvd_error *err)
{
    int status = 0;

    if (gpu->has_failed || (hvd_gpu_is_idle(gpu) && gpu->jobs == NULL)) {
        return 0;
    }
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        while (status == 0 && gpu->in_flight[i] != NULL) {
            status = gpu->pool->module->event_test(gpu->in_flight[i]->event, err);
            if (status == 0) {
                complete_mark(gpu, i, completed, context, 0, "");
                *moved = true;
            }
        }
        status = status == HVD_INPROGRESS ? 0 : status;
    }
    return status != 0 ? status : check_comms(gpu, hvd_clock_ns(), err);
}

int64_t hvd_gpu_deadline(const struct hvd_gpu_runtime *gpu, bool is_waited,
                         int64_t now_ns)
{
    if (gpu == NULL || gpu->has_failed) {
        return -1;
    }
    if (gpu->waiting > 0 || (is_waited && !hvd_gpu_is_idle(gpu))) {
        return now_ns + look_waited_ns;
    }
    return hvd_gpu_is_idle(gpu) ? -1 : now_ns + look_ns;
}

bool hvd_gpu_is_idle(const struct hvd_gpu_runtime *gpu)
{
    return atomic_load(&gpu->in_flight_count) == 0;
}

/* Whether all submitted and launched work has ended or failed. */
static bool has_stopped(const struct hvd_gpu_runtime *gpu)
{
    for (const struct hvd_gpu_job *job = gpu->jobs; job != NULL; job = job->next) {
        if (hvd_gpu_job_reached(job, NULL) == HVD_INPROGRESS) {
            return false;
        }
    }
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        for (struct hvd_gpu_mark *mark = gpu->in_flight[i]; mark != NULL;
             mark = mark->next) {
            if (gpu->pool->module->event_test(mark->event, NULL) == HVD_INPROGRESS) {
                return false;
            }
        }
    }
    return true;
}

/* Keeps the mark's buffers from being freed, because the device may still use them. */
static void abandon_mark(struct hvd_gpu_mark *mark)
{
    mark->buffers = NULL;
}

/* Whether the device is open; waits if another thread is opening it. */
static bool has_opened(struct hvd_gpu_runtime *gpu)
{
    bool opened;

    pthread_mutex_lock(&gpu->lock);
    opened = gpu->pool != NULL;
    pthread_mutex_unlock(&gpu->lock);
    return opened;
}

void hvd_gpu_fail(struct hvd_gpu_runtime *gpu, hvd_gpu_completed *completed,
                  void *context, int status, const char *text)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int64_t until_ns = hvd_clock_ns() + stop_ns;
    bool is_free;

    if (gpu == NULL || gpu->has_failed || !has_opened(gpu)) {
        return;
    }
    gpu->has_failed = true;
    gpu->pool->module->abort(gpu->pool->device);
    while (!(is_free = has_stopped(gpu)) && hvd_clock_ns() < until_ns) {
        nanosleep(&moment, NULL);
    }
    gpu->is_stuck = !is_free;
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        while (gpu->in_flight[i] != NULL) {
            if (!is_free) {
                abandon_mark(gpu->in_flight[i]);
            }
            complete_mark(gpu, i, completed, context, status, text);
        }
    }
}

/* --- process sets --- */

static void end_comm(struct hvd_gpu_runtime *gpu, struct hvd_gpu_comm *comm)
{
    if (comm != NULL) {
        gpu->pool->module->comm_destroy(comm);
    }
}

void hvd_gpu_set_destroy(struct hvd_gpu_runtime *gpu, struct hvd_gpu_set *set)
{
    struct hvd_gpu_set **at = &gpu->sets;

    while (*at != set) {
        at = &(*at)->next;
    }
    *at = set->next;
    end_comm(gpu, set->comm);
    end_comm(gpu, set->node_comm);
    hvd_gpu_inter_node_destroy(set->inter_node);
    free(set);
}

char *hvd_gpu_set_window(const struct hvd_gpu_set *set, size_t bytes)
{
    for (int i = 0; i < HVD_GPU_WINDOW_CLASSES; i++) {
        if (set->windows[i] != NULL && set->windows[i]->bytes >= bytes) {
            return set->windows[i]->memory;
        }
    }
    return NULL;
}
