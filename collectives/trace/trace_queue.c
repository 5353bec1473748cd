/* SPDX-License-Identifier: Apache-2.0 */
/* Queues events for a thread that writes them. */
#include "collectives/trace/trace_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_binding/base/thread.h"

enum {
    BATCH = 256 /* most events for one call of the sink */
};

struct hvd_trace_queue {
    struct hvd_trace_queue_options options;
    pthread_t thread;

    /* used by the thread only: events taken from the ring, but not yet by the sink */
    struct hvd_trace_event batch[BATCH];
    size_t batch_count;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct hvd_trace_event *ring; /* [capacity] */
    size_t first;
    size_t count;
    size_t text_bytes;
    bool is_pausing; /* wake the thread only when the queue is half full */
    bool is_ending;
};

static size_t lines_bytes(const struct hvd_trace_event *event)
{
    return event->kind == HVD_TRACE_LINES ? (size_t)event->number : 0;
}

bool hvd_trace_queue_put(struct hvd_trace_queue *queue,
                         const struct hvd_trace_event *event)
{
    size_t capacity = queue->options.capacity;
    bool fits;

    pthread_mutex_lock(&queue->lock);
    fits = queue->count < capacity &&
           queue->text_bytes + lines_bytes(event) <= queue->options.text_bytes;
    if (fits) {
        queue->ring[(queue->first + queue->count) % capacity] = *event;
        queue->count++;
        queue->text_bytes += lines_bytes(event);
        if (queue->is_pausing ? queue->count == capacity / 2 : queue->count == 1) {
            pthread_cond_signal(&queue->changed);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    if (!fits) {
        free(event->text);
    }
    return fits;
}

size_t hvd_trace_queue_room(struct hvd_trace_queue *queue)
{
    size_t room;

    pthread_mutex_lock(&queue->lock);
    room = queue->options.capacity - queue->count;
    pthread_mutex_unlock(&queue->lock);
    return room;
}

/* Fills up the batch. The caller must hold the lock. */
static void take_events(struct hvd_trace_queue *queue)
{
    while (queue->count > 0 && queue->batch_count < BATCH) {
        struct hvd_trace_event *event = &queue->ring[queue->first];

        queue->batch[queue->batch_count++] = *event;
        queue->text_bytes -= lines_bytes(event);
        queue->first = (queue->first + 1) % queue->options.capacity;
        queue->count--;
    }
}

/* Gives the batch to the sink; returns whether the sink took the whole batch. */
static bool empty_batch(struct hvd_trace_queue *queue, bool is_last)
{
    size_t taken = queue->options.sink(queue->options.context, queue->batch,
                                       queue->batch_count, is_last);

    for (size_t i = 0; i < taken; i++) {
        free(queue->batch[i].text);
    }
    queue->batch_count -= taken;
    memmove(queue->batch, queue->batch + taken,
            queue->batch_count * sizeof(queue->batch[0]));
    return queue->batch_count == 0;
}

/* Waits for pause_ms. A queue that becomes half full ends the pause, unless the sink has
 * refused events. The caller must hold the lock. */
static void pause_awhile(struct hvd_trace_queue *queue, bool is_refused)
{
    const int64_t second = 1000000000;
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += queue->options.pause_ms * INT64_C(1000000);
    until.tv_sec += until.tv_nsec / second;
    until.tv_nsec %= second;
    queue->is_pausing = true;
    while (error == 0 && !queue->is_ending &&
           (is_refused || queue->count < queue->options.capacity / 2)) {
        error = pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
    }
    queue->is_pausing = false;
}

static void *write_events(void *arg)
{
    struct hvd_trace_queue *queue = arg;

    pthread_mutex_lock(&queue->lock);
    for (;;) {
        bool is_ending, is_done;

        while (queue->count == 0 && queue->batch_count == 0 && !queue->is_ending) {
            pthread_cond_wait(&queue->changed, &queue->lock);
        }
        take_events(queue);
        is_ending = queue->is_ending;
        if (queue->batch_count == 0) {
            break;
        }
        pthread_mutex_unlock(&queue->lock);
        is_done = empty_batch(queue, is_ending);
        pthread_mutex_lock(&queue->lock);
        if (!is_done || queue->count == 0) {
            pause_awhile(queue, !is_done);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static int init_lock(struct hvd_trace_queue *queue)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    failed |= pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&queue->changed, &attributes);
    failed |= pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_destroy(&attributes);
    return failed;
}

static void queue_free(struct hvd_trace_queue *queue)
{
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->ring);
    free(queue);
}

int hvd_trace_queue_create(const struct hvd_trace_queue_options *options,
                           struct hvd_trace_queue **out, struct hvd_error *err)
{
    struct hvd_trace_queue *queue = calloc(1, sizeof(*queue));
    int error;

    if (queue == NULL || init_lock(queue) != 0) {
        free(queue);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a timeline");
    }
    queue->options = *options;
    queue->ring = calloc(options->capacity, sizeof(queue->ring[0]));
    if (queue->ring == NULL) {
        queue_free(queue);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a timeline");
    }
    /* hvd_thread_start blocks all signals, so a file that grows beyond the process's
     * limit (SIGXFSZ) does not kill the process. */
    error = hvd_thread_start(&queue->thread, write_events, queue);
    if (error != 0) {
        queue_free(queue);
        return hvd_fail(err, HVD_ERR_SYS, "cannot start the timeline's thread: %s",
                        strerror(error));
    }
    *out = queue;
    return 0;
}

void hvd_trace_queue_destroy(struct hvd_trace_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    queue->is_ending = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    queue_free(queue);
}
