/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of buffers of an open GPU, and marks in its streams.
 *
 * Freeing device memory waits for the device, so buffers are kept for reuse until the
 * pool is destroyed or memory is short. Any thread. */
#ifndef HVD_GPU_POOL_H
#define HVD_GPU_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/refcount.h"
#include "collectives/gpu/gpu_module.h"

struct hvd_gpu_buffer;

/* Owned by its creator and by each mark and buffer; the last owner closes the device. */
struct hvd_gpu_pool {
    struct hvd_refcount refcount;
    const struct hvd_gpu_module *module;
    struct hvd_gpu_device *device;
    pthread_mutex_t lock;
    struct hvd_gpu_buffer *idle; /* lock */
    _Atomic bool has_said_full;
    _Atomic bool is_short; /* pinned host memory was taken for device memory */
    _Atomic bool is_tried_again; /* the framework has freed device memory since then */
    /* when the framework was last told that memory is short; 0: never */
    _Atomic int64_t told_ns;
};

/* A piece of memory. Returns to the pool when its last owner drops it. */
struct hvd_gpu_buffer {
    struct hvd_refcount refcount;
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_buffer *next; /* of the pool, or of its only owner */
    enum hvd_gpu_memory_kind memory_kind;
    size_t bytes;
    char *memory;
    struct hvd_gpu_event *last_use; /* the end of its last use; NULL if there is none */
};

/* A point in a stream. */
struct hvd_gpu_mark {
    struct hvd_refcount refcount;
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_event *event;
    /* Set if this is the end of a batch in flight, see gpu_runtime.h: */
    struct hvd_gpu_mark *next;
    struct hvd_entry *entries;
    struct hvd_gpu_buffer *buffers; /* dropped when the device reaches it */
    struct hvd_gpu_trace *trace; /* NULL: none */
};

/* Takes over the device, which has no work yet, unless it fails. The caller owns *out. */
int hvd_gpu_pool_create(const struct hvd_gpu_module *module,
                        struct hvd_gpu_device *device, struct hvd_gpu_pool **out,
                        struct hvd_error *err);

/* Gets a buffer of at least so many bytes that the device does not use. The caller owns
 * *out. */
int hvd_gpu_buffer_take(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                        size_t bytes, struct hvd_gpu_buffer **out, struct hvd_error *err);

/* Gets memory that NCCL, kernels and copies can use: device memory or, if the device is
 * full, pinned host memory, which they can access too. A rank that lacks memory thus
 * stays in step with the others. */
int hvd_gpu_buffer_take_near(struct hvd_gpu_pool *pool, size_t bytes,
                             struct hvd_gpu_buffer **out, struct hvd_error *err);

/* Whether the framework should free device memory that it holds without using it. After
 * returning true it returns false for ten seconds: freeing memory costs time and may be
 * in vain. */
bool hvd_gpu_pool_is_short(struct hvd_gpu_pool *pool);

/* The framework has freed what it could. */
void hvd_gpu_pool_freed(struct hvd_gpu_pool *pool);

/* Whether the framework has freed memory since the last call and this buffer stands in
 * for device memory: then try to get device memory. */
bool hvd_gpu_buffer_is_tried_again(const struct hvd_gpu_buffer *buffer);

/* Marks the buffer as used by the work that is on the stream now. */
int hvd_gpu_buffer_used(struct hvd_gpu_buffer *buffer, void *stream,
                        struct hvd_error *err);

/* Creates a mark that is not recorded yet. The caller owns *out. */
int hvd_gpu_mark_create(struct hvd_gpu_pool *pool, struct hvd_gpu_mark **out,
                        struct hvd_error *err);

/* Drops everything that the mark keeps until the device reaches it. */
void hvd_gpu_mark_clear(struct hvd_gpu_mark *mark);

#endif
