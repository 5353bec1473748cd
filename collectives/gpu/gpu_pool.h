/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of memory buffers of an open GPU, and marks: points in its streams.
 *
 * Freeing device memory waits for the device, so buffers are kept for reuse until the
 * pool is destroyed or memory is short; then a thread of the module frees them. Any
 * thread. */
#ifndef HVD_GPU_POOL_H
#define HVD_GPU_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/refcount.h"
#include "collectives/gpu/gpu_module.h"

struct hvd_gpu_buffer;

/* Owned by its creator and by each mark and buffer; the last owner to drop it closes the
 * device. */
struct hvd_gpu_pool {
    struct hvd_refcount refcount;
    const struct hvd_gpu_module *module;
    struct hvd_gpu_device *device;
    pthread_mutex_t lock;
    struct hvd_gpu_buffer *idle; /* lock */
    _Atomic bool has_said_full;
    _Atomic bool frees_late; /* memory was not freed within the time for it */
    _Atomic bool is_short; /* pinned host memory was taken instead of device memory */
    /* the framework has freed device memory: use it instead of pinned memory */
    _Atomic bool is_tried_again;
    /* when the framework was last told that memory is short; 0: never */
    _Atomic int64_t told_ns;
};

/* A piece of memory. Returns to the pool when its last owner drops it. */
struct hvd_gpu_buffer {
    struct hvd_refcount refcount;
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_buffer *next; /* in the pool's list, or in that of its only owner */
    enum hvd_gpu_memory_kind memory_kind;
    size_t bytes;
    char *memory;
    /* end of the buffer's last use; NULL if there was none */
    struct hvd_gpu_event *last_use;
};

/* A point in a stream. */
struct hvd_gpu_mark {
    struct hvd_refcount refcount;
    struct hvd_gpu_pool *pool;
    struct hvd_gpu_event *event;
    struct hvd_gpu_position position; /* if the mark is on a stream of the framework */
    /* Set if this is the end of a batch in flight, see gpu_runtime.h: */
    struct hvd_gpu_mark *next;
    struct hvd_entry *entries;
    struct hvd_gpu_buffer *buffers; /* dropped when the device reaches the mark */
    struct hvd_gpu_trace *trace; /* NULL: not traced */
};

/* Takes over the device, which has no work yet; if it fails, the caller keeps it. The
 * caller owns *out. */
int hvd_gpu_pool_create(const struct hvd_gpu_module *module,
                        struct hvd_gpu_device *device, struct hvd_gpu_pool **out,
                        struct hvd_error *err);

/* Takes a buffer of at least `bytes` bytes that the device does not use. The caller owns
 * *out. If memory is short, waits up to a minute until unused buffers are freed. */
int hvd_gpu_buffer_take(struct hvd_gpu_pool *pool, enum hvd_gpu_memory_kind memory_kind,
                        size_t bytes, struct hvd_gpu_buffer **out, struct hvd_error *err);

/* Takes memory that NCCL, kernels and copies can use: device memory or, if the device is
 * full, pinned host memory, which they can also access. So a rank that lacks memory still
 * does the same as the others. Waits up to 3 s for unused buffers, and not again while
 * none of them is freed. */
int hvd_gpu_buffer_take_near(struct hvd_gpu_pool *pool, size_t bytes,
                             struct hvd_gpu_buffer **out, struct hvd_error *err);

/* Drops the reference of the caller; NULL is allowed. */
void hvd_gpu_buffer_drop(struct hvd_gpu_buffer *buffer);

/* Whether the framework should free device memory that it holds but does not use. After
 * returning true, it returns false for ten seconds: freeing takes time and may not help.
 */
bool hvd_gpu_pool_is_short(struct hvd_gpu_pool *pool);

/* The framework calls this when it has freed all memory it could. */
void hvd_gpu_pool_freed(struct hvd_gpu_pool *pool);

/* Whether the caller should try to replace this buffer of host memory by device memory,
 * because the framework has freed memory since the last call. */
bool hvd_gpu_buffer_is_tried_again(const struct hvd_gpu_buffer *buffer);

/* Marks the buffer as used by the work that is on the stream now. */
int hvd_gpu_buffer_used(struct hvd_gpu_buffer *buffer, void *stream,
                        struct hvd_error *err);

/* Creates a mark that is not recorded yet. The caller owns *out. */
int hvd_gpu_mark_create(struct hvd_gpu_pool *pool, struct hvd_gpu_mark **out,
                        struct hvd_error *err);

/* Lets the mark hold *buffer, of which the caller is the only owner, until the device has
 * reached the mark; NULL is allowed. Sets *buffer to NULL. */
void hvd_gpu_mark_hold(struct hvd_gpu_mark *mark, struct hvd_gpu_buffer **buffer);

/* Drops everything that the mark holds. Call it once the device has reached the mark. */
void hvd_gpu_mark_clear(struct hvd_gpu_mark *mark);

#endif
