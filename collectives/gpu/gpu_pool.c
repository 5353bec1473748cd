/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and marks of an open GPU. */
#include "collectives/gpu/gpu_pool.h"

#include <stdlib.h>

#include "collectives/gpu/gpu_trace.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

/* The smallest buffer. */
static const size_t least_bytes = 64 << 10;

/* How long to wait until memory is freed, because a rank that dies must not hold up the
 * others for ever: for a caller that can use pinned host memory instead, and for one
 * whose job ends without the memory. The device may have work for seconds although all
 * ranks live. */
static const int short_free_ms = 3000;
static const int long_free_ms = 60000;

/* The shortest time between two requests to the framework to free memory. */
static const int64_t ask_ns = 10000000000;

static void free_buffer(struct hvd_gpu_buffer *buffer)
{
    buffer->pool->module->free(buffer->pool->device, buffer->memory_kind, buffer->memory);
    buffer->pool->module->event_destroy(buffer->last_use);
    free(buffer);
}

static void end_pool(struct hvd_refcount *refcount)
{
    struct hvd_gpu_pool *pool = (struct hvd_gpu_pool *)refcount;

    while (pool->idle != NULL) {
        struct hvd_gpu_buffer *buffer = pool->idle;

        pool->idle = buffer->next;
        free_buffer(buffer);
    }
    pool->module->close(pool->device);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

int hvd_gpu_pool_create(const struct hvd_gpu_module *module,
                        struct hvd_gpu_device *device, struct hvd_gpu_pool **out,
                        struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a GPU");
    }
    hvd_refcount_init(&pool->refcount, end_pool);
    pthread_mutex_init(&pool->lock, NULL);
    pool->module = module;
    pool->device = device;
    *out = pool;
    return 0;
}

/* --- buffers --- */

static void end_buffer(struct hvd_refcount *refcount)
{
    struct hvd_gpu_buffer *buffer = (struct hvd_gpu_buffer *)refcount;
    struct hvd_gpu_pool *pool = buffer->pool;

    pthread_mutex_lock(&pool->lock);
    buffer->next = pool->idle;
    pool->idle = buffer;
    pthread_mutex_unlock(&pool->lock);
    hvd_refcount_drop(&pool->refcount);
}

/* Returns 0 if the device no longer uses the buffer, HVD_INPROGRESS if it does. */
static int test_last_use(const struct hvd_gpu_buffer *buffer, struct hvd_error *err)
{
    return buffer->last_use == NULL
               ? 0
               : buffer->pool->module->event_test(buffer->last_use, err);
}

static bool fits_buffer(const struct hvd_gpu_buffer *buffer,
                        enum hvd_gpu_memory_kind memory_kind, size_t bytes)
{
    return buffer->memory_kind == memory_kind && buffer->bytes >= bytes &&
           buffer->bytes <= 2 * bytes;
}

/* Finds the smallest buffer that fits and wastes less than half of itself; *out is NULL
 * if there is none. The lock is held. */
static int find_idle(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                     size_t bytes, struct hvd_gpu_buffer **out, struct hvd_error *err)
{
    struct hvd_gpu_buffer **best = NULL;

    *out = NULL;
    for (struct hvd_gpu_buffer **at = &pool->idle; *at != NULL; at = &(*at)->next) {
        if (fits_buffer(*at, memory_kind, bytes) &&
            (best == NULL || (*at)->bytes < (*best)->bytes)) {
            int status = test_last_use(*at, err);

            if (status < 0) {
                return status;
            }
            best = status == 0 ? at : best;
        }
    }
    if (best != NULL) {
        *out = *best;
        *best = (*out)->next;
        (*out)->next = NULL;
    }
    return 0;
}

static int make_buffer(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                       size_t bytes, struct hvd_gpu_buffer **out, struct hvd_error *err)
{
    struct hvd_gpu_buffer *buffer = calloc(1, sizeof(*buffer));
    void *memory = NULL;
    int status;

    if (buffer == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a GPU buffer");
    }
    status = pool->module->alloc(pool->device, memory_kind, bytes, &memory, err);
    if (status != 0) {
        free(buffer);
        return status;
    }
    buffer->pool = pool;
    buffer->memory_kind = memory_kind;
    buffer->bytes = bytes;
    buffer->memory = memory;
    *out = buffer;
    return 0;
}

/* Removes from the pool the buffers of this kind that the device no longer uses. Buffers
 * whose state is unknown stay. */
static struct hvd_gpu_buffer *take_idle(struct hvd_gpu_pool *pool,
                                        enum hvd_gpu_memory_kind memory_kind)
{
    struct hvd_gpu_buffer *taken = NULL, **at = &pool->idle;

    pthread_mutex_lock(&pool->lock);
    while (*at != NULL) {
        struct hvd_gpu_buffer *buffer = *at;

        if (buffer->memory_kind == memory_kind && test_last_use(buffer, NULL) == 0) {
            *at = buffer->next;
            buffer->next = taken;
            taken = buffer;
        } else {
            at = &buffer->next;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

static void retire_buffers(const struct hvd_gpu_pool *pool, struct hvd_gpu_buffer *buffer)
{
    while (buffer != NULL) {
        struct hvd_gpu_buffer *next = buffer->next;

        pool->module->retire(pool->device, buffer->memory_kind, buffer->memory);
        pool->module->event_destroy(buffer->last_use);
        free(buffer);
        buffer = next;
    }
}

/* When memory is short: returns unused buffers to the device and tries again. Asks for
 * `bytes` bytes only, not for a rounded size.
 *
 * Freeing device memory may wait for all work launched on the device. This work ends,
 * because a batch that may launch waits only for batches that all ranks can launch before
 * it, unless a rank dies: only this thread may learn of that. So a thread of the module
 * frees the buffers, and this one waits for it up to wait_ms. */
static int make_from_rest(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                          size_t bytes, int wait_ms, struct hvd_gpu_buffer **out,
                          struct hvd_error *err)
{
    retire_buffers(pool, take_idle(pool, memory_kind));
    atomic_store(&pool->frees_late, !pool->module->await_retired(pool->device, wait_ms));
    return make_buffer(pool, memory_kind, bytes, out, err);
}

static int take_buffer(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                       size_t bytes, int wait_ms, struct hvd_gpu_buffer **out,
                       struct hvd_error *err)
{
    struct hvd_gpu_buffer *buffer;
    size_t size = least_bytes;
    int status;

    while (size < bytes) {
        size += size / 2 < bytes ? size / 2 : bytes - size;
    }
    pthread_mutex_lock(&pool->lock);
    status = find_idle(pool, memory_kind, size, &buffer, err);
    pthread_mutex_unlock(&pool->lock);
    if (status == 0 && buffer == NULL) {
        status = make_buffer(pool, memory_kind, size, &buffer, err);
        if (status == HVD_ERR_NOMEM) {
            status = make_from_rest(pool, memory_kind, bytes, wait_ms, &buffer, err);
        }
    }
    if (status != 0) {
        return status;
    }
    hvd_refcount_init(&buffer->refcount, end_buffer);
    hvd_refcount_keep(&pool->refcount);
    *out = buffer;
    return 0;
}

int hvd_gpu_buffer_take(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                        size_t bytes, struct hvd_gpu_buffer **out, struct hvd_error *err)
{
    return take_buffer(pool, memory_kind, bytes, long_free_ms, out, err);
}

static void say_full(struct hvd_gpu_pool *pool, const char *text)
{
    if (!atomic_exchange(&pool->has_said_full, true)) {
        hvd_log(HVD_LOG_WARN, "%s; hvd uses pinned host memory instead, which is slower",
                text);
    }
}

int hvd_gpu_buffer_take_near(struct hvd_gpu_pool *pool, size_t bytes,
                             struct hvd_gpu_buffer **out, struct hvd_error *err)
{
    const bool is_stuck =
        atomic_load(&pool->frees_late) && !pool->module->await_retired(pool->device, 0);
    struct hvd_error full = {0};
    int status = take_buffer(pool, HVD_GPU_DEVICE_MEMORY, bytes,
                             is_stuck ? 0 : short_free_ms, out, &full);

    if (status != HVD_ERR_NOMEM) {
        return status == 0 ? 0 : hvd_fail(err, status, "%s", full.text);
    }
    if (hvd_gpu_buffer_take(pool, HVD_GPU_HOST_MEMORY, bytes, out, NULL) != 0) {
        return hvd_fail(err, status, "%s; there is not enough pinned host memory either",
                        full.text);
    }
    say_full(pool, full.text);
    atomic_store(&pool->is_short, true);
    return 0;
}

void hvd_gpu_buffer_drop(struct hvd_gpu_buffer *buffer)
{
    hvd_refcount_drop(buffer != NULL ? &buffer->refcount : NULL);
}

bool hvd_gpu_pool_is_short(struct hvd_gpu_pool *pool)
{
    int64_t told_ns = atomic_load(&pool->told_ns), now_ns;

    if (!atomic_load(&pool->is_short)) {
        return false;
    }
    now_ns = hvd_clock_ns();
    if (told_ns != 0 && now_ns - told_ns < ask_ns) {
        return false;
    }
    /* Lets only one of several threads ask the framework. */
    return atomic_compare_exchange_strong(&pool->told_ns, &told_ns, now_ns);
}

void hvd_gpu_pool_freed(struct hvd_gpu_pool *pool)
{
    atomic_store(&pool->is_short, false);
    atomic_store(&pool->is_tried_again, true);
}

bool hvd_gpu_buffer_is_tried_again(const struct hvd_gpu_buffer *buffer)
{
    return buffer->memory_kind == HVD_GPU_HOST_MEMORY &&
           atomic_exchange(&buffer->pool->is_tried_again, false);
}

int hvd_gpu_buffer_used(struct hvd_gpu_buffer *buffer, void *stream,
                        struct hvd_error *err)
{
    const struct hvd_gpu_module *module = buffer->pool->module;
    int status = 0;

    if (buffer->last_use == NULL) {
        status = module->event_create(buffer->pool->device, &buffer->last_use, err);
    } else {
        /* The last use may be on another stream: let this stream wait for it before the
         * event is recorded again. */
        status = module->event_wait(buffer->last_use, stream, err);
    }
    return status != 0 ? status
                       : module->event_record(buffer->last_use, stream, NULL, err);
}

/* --- marks --- */

void hvd_gpu_mark_hold(struct hvd_gpu_mark *mark, struct hvd_gpu_buffer **buffer)
{
    if (*buffer != NULL) {
        (*buffer)->next = mark->buffers;
        mark->buffers = *buffer;
        *buffer = NULL;
    }
}

void hvd_gpu_mark_clear(struct hvd_gpu_mark *mark)
{
    while (mark->buffers != NULL) {
        struct hvd_gpu_buffer *buffer = mark->buffers;

        mark->buffers = buffer->next;
        buffer->next = NULL;
        hvd_gpu_buffer_drop(buffer);
    }
    hvd_gpu_trace_destroy(mark->trace);
    mark->trace = NULL;
}

static void end_mark(struct hvd_refcount *refcount)
{
    struct hvd_gpu_mark *mark = (struct hvd_gpu_mark *)refcount;

    hvd_gpu_mark_clear(mark);
    mark->pool->module->event_destroy(mark->event);
    hvd_refcount_drop(&mark->pool->refcount);
    free(mark);
}

int hvd_gpu_mark_create(struct hvd_gpu_pool *pool, struct hvd_gpu_mark **out,
                        struct hvd_error *err)
{
    struct hvd_gpu_mark *mark = calloc(1, sizeof(*mark));
    int status;

    if (mark == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for an event");
    }
    status = pool->module->event_create(pool->device, &mark->event, err);
    if (status != 0) {
        free(mark);
        return status;
    }
    hvd_refcount_init(&mark->refcount, end_mark);
    mark->pool = pool;
    hvd_refcount_keep(&pool->refcount);
    *out = mark;
    return 0;
}
