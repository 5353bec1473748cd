/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of an open GPU that is used again and again, and places in its streams.
 *
 * Freeing device memory waits for the device, so nothing is freed before the end: what
 * was given back waits for the next who needs that much. Any thread. */
#ifndef HVD_GPU_POOL_H
#define HVD_GPU_POOL_H

#include <pthread.h>

#include "gpu_binding/base/refcount.h"
#include "collectives/gpu/gpu_module.h"

struct hvd_gpu_buffer;

/* Owned by who opened it, and by each mark and buffer; the last one closes the device. */
struct hvd_gpu_pool {
    struct hvd_refcount refcount;
    const struct hvd_gpu_module *module;
    struct hvd_gpu_device *device;
    pthread_mutex_t lock;
    struct hvd_gpu_buffer *idle; /* lock */
};

/* A piece of memory. Given back when its last owner drops it. */
struct hvd_gpu_buffer {
    struct hvd_refcount refcount;
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_buffer *next; /* of the pool, or of who owns it alone */
    enum hvd_gpu_place place;
    size_t bytes;
    char *memory;
    struct hvd_gpu_event *last_use; /* NULL, or a place in a stream that uses it */
};

/* A place in a stream. */
struct hvd_gpu_mark {
    struct hvd_refcount refcount;
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_event *event;
    /* While the end of a batch is under way, see gpu_runtime.h: */
    struct hvd_gpu_mark *next;
    struct hvd_entry *entries;
    struct hvd_gpu_buffer
        *buffers; /* dropped when the device has come here; so host_memory */
    void *host_memory; /* host memory */
    struct hvd_gpu_trace *trace; /* NULL: nobody wants to know when */
};

/* Takes over device, which has no work yet; the caller owns *out. After a failure it is the
 * caller's again. */
int hvd_gpu_pool_create(const struct hvd_gpu_module *module,
                        struct hvd_gpu_device *device, struct hvd_gpu_pool **out,
                        struct hvd_error *err);

/* At least so many bytes that nobody uses any more. The caller owns *out. */
int hvd_gpu_buffer_take(struct hvd_gpu_pool *pool, enum hvd_gpu_place place, size_t bytes,
                        struct hvd_gpu_buffer **out, struct hvd_error *err);

/* What is on the stream now uses the buffer. */
int hvd_gpu_buffer_used(struct hvd_gpu_buffer *buffer, void *stream,
                        struct hvd_error *err);

/* A mark that is nowhere yet; the caller owns *out. */
int hvd_gpu_mark_create(struct hvd_gpu_pool *pool, struct hvd_gpu_mark **out,
                        struct hvd_error *err);

/* Ends what a mark holds until the device has come to it. */
void hvd_gpu_mark_clear(struct hvd_gpu_mark *mark);

#endif
