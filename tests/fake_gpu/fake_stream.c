/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events of the stand-in. Each stream is a thread, with random delays. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

enum {
    DISABLE_TIMING = 2,
    STAGED_BYTES = 64 << 10, /* the largest copy that is staged */
};

/* An event counts how often it was recorded, and how many of these recordings were
 * reached. */
struct fake_event {
    const struct fake_context *context;
    int owners; /* the program, and operations on streams */
    uint64_t recorded;
    uint64_t reached;
    bool has_time;
    bool was_asked; /* queried since it was recorded */
    bool is_captured; /* it was last recorded on a captured stream */
    double reached_ms; /* time of the last recording, in the device's clock */
};

enum kind {
    COPY,
    SET,
    WAIT,
    RECORD,
    CALL
};

struct op {
    struct op *next;
    enum kind kind;
    void *to;
    const void *from;
    size_t bytes;
    unsigned char value;
    struct fake_event *event;
    uint64_t recording; /* which recording of the event is reached or waited for */
    void (*call)(void *argument);
    void *staged; /* the bytes to copy, in memory of the operation */
    bool *is_done; /* set when done; NULL: no thread waits */
};

struct fake_stream {
    struct fake_stream *next;
    struct fake_context *context;
    bool is_default; /* the default stream of its context */
    uint64_t id; /* unlike the address, never used again */
    pthread_t thread;
    struct op *first;
    struct op **end;
    bool is_busy;
    bool must_stop;
    unsigned random;
};

static struct fake_stream *streams;
static _Atomic uint64_t last_id;
/* on the thread of a stream: its context */
static _Thread_local struct fake_context *acting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* --- the threads of streams --- */

static unsigned seed(void)
{
    static unsigned streams_made;
    const char *text = getenv("FAKE_GPU_SEED");

    return (text != NULL ? (unsigned)strtoul(text, NULL, 0) : 1u) * 2654435761u +
           ++streams_made * 40503u + (unsigned)getpid();
}

static unsigned next_random(struct fake_stream *stream)
{
    stream->random = stream->random * 1664525u + 1013904223u;
    return stream->random >> 8;
}

/* Delays an operation: half of the time not at all, often briefly, sometimes for long. */
static void take_time(struct fake_stream *stream)
{
    unsigned dice = next_random(stream) % 16;
    struct timespec time = {0};

    if (dice < 8) {
        return;
    }
    time.tv_nsec = dice < 15 ? (long)(next_random(stream) % 100000)
                             : (long)(next_random(stream) % 3000000);
    nanosleep(&time, NULL);
}

static void drop_event(struct fake_event *event)
{
    if (--event->owners == 0) {
        free(event);
    }
}

/* How far the device's clock was moved forward; protected by the lock. */
static double skipped_ms;

HVD_EXPORT void fake_gpu_skip_time(double ms)
{
    pthread_mutex_lock(&lock);
    skipped_ms += ms;
    pthread_mutex_unlock(&lock);
}

/* Returns the device's own time, which starts elsewhere than the host's. The lock is
 * held. */
static double device_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 7e6 + skipped_ms + (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Marks a recording of an event as reached, or waits until it is. The lock is held. */
static void reach(struct op *op)
{
    if (op->kind == RECORD && op->event->reached < op->recording) {
        op->event->reached = op->recording;
        op->event->reached_ms = device_ms();
    }
    while (op->kind == WAIT && op->event->reached < op->recording) {
        pthread_cond_wait(&changed, &lock);
    }
    drop_event(op->event);
}

static void move_bytes(const struct op *op)
{
    void *to = fake_gpu_reach(op->to, op->bytes);
    const void *from = op->kind == COPY ? fake_gpu_reach(op->from, op->bytes) : to;

    if (to == NULL || from == NULL) {
        fprintf(stderr, "fake GPU: a copy or memset goes beyond device memory\n");
        abort();
    }
    if (op->kind == COPY) {
        memmove(to, from, op->bytes);
    } else {
        memset(to, op->value, op->bytes);
    }
}

static void do_op(struct fake_stream *stream, struct op *op)
{
    take_time(stream);
    if (op->kind == CALL) {
        op->call(op->to);
    } else if (op->kind == COPY || op->kind == SET) {
        move_bytes(op);
    }
    pthread_mutex_lock(&lock);
    if (op->kind == WAIT || op->kind == RECORD) {
        reach(op);
    }
    pthread_mutex_unlock(&lock);
}

static void *run(void *argument)
{
    struct fake_stream *stream = argument;

    acting = stream->context;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct op *op = stream->first;

        if (op == NULL && stream->must_stop) {
            break;
        }
        if (op == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        stream->first = op->next;
        stream->end = stream->first == NULL ? &stream->first : stream->end;
        stream->is_busy = true;
        pthread_mutex_unlock(&lock);
        do_op(stream, op);
        pthread_mutex_lock(&lock);
        if (op->is_done != NULL) {
            *op->is_done = true;
        }
        free(op->staged);
        free(op);
        stream->is_busy = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct fake_stream *create_stream(struct fake_context *context, bool is_default)
{
    struct fake_stream *stream = calloc(1, sizeof(*stream));

    stream->end = &stream->first;
    stream->random = seed();
    stream->context = context;
    stream->is_default = is_default;
    stream->id = atomic_fetch_add(&last_id, 1) + 1;
    pthread_create(&stream->thread, NULL, run, stream);
    pthread_mutex_lock(&lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    return stream;
}

/* Returns the current context's default stream, creating it at first use. */
static struct fake_stream *default_stream(void)
{
    struct fake_stream *stream;

    pthread_mutex_lock(&lock);
    stream = streams;
    while (stream != NULL && !(stream->is_default && stream->context == fake_current())) {
        stream = stream->next;
    }
    pthread_mutex_unlock(&lock);
    return stream != NULL ? stream : create_stream(fake_current(), true);
}

static void put(struct fake_stream *stream, const struct op *wanted)
{
    struct op *op;

    if (stream != NULL && fake_capture_has(stream)) {
        return;
    }
    stream = stream == NULL ? default_stream() : stream;
    op = malloc(sizeof(*op));
    *op = *wanted;
    op->next = NULL;
    pthread_mutex_lock(&lock);
    *stream->end = op;
    stream->end = &op->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

struct fake_context *fake_stream_context(const struct fake_stream *stream)
{
    return stream != NULL ? stream->context : fake_current();
}

HVD_EXPORT int fake_gpu_device_of(const struct fake_stream *stream)
{
    const struct fake_context *context = fake_stream_context(stream);

    return context != NULL ? fake_number(context) : -1;
}

struct fake_context *fake_acting(void)
{
    return acting;
}

HVD_EXPORT void fake_gpu_enqueue(struct fake_stream *stream, void (*call)(void *argument),
                                 void *argument)
{
    put(stream, &(struct op){.kind = CALL, .to = argument, .call = call});
}

void fake_drain_streams(const struct fake_context *context)
{
    pthread_mutex_lock(&lock);
    for (struct fake_stream *stream = streams; stream != NULL;) {
        if ((context == NULL || stream->context == context) &&
            (stream->is_busy || stream->first != NULL)) {
            pthread_cond_wait(&changed, &lock);
            stream = streams;
        } else {
            stream = stream->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* --- the driver's functions --- */

HVD_EXPORT int cuStreamCreateWithPriority(struct fake_stream **out, unsigned flags,
                                          int priority)
{
    int error = fake_begin("cuStreamCreateWithPriority");

    (void)flags;
    (void)priority;
    if (error != FAKE_SUCCESS) {
        return error;
    }
    *out = create_stream(fake_current(), false);
    fake_count(&fake_counters()->streams, 1);
    return FAKE_SUCCESS;
}

/* Drivers before CUDA 12 lack this function; hvd does not ask for default streams. */
HVD_EXPORT int cuStreamGetId(struct fake_stream *stream, unsigned long long *id)
{
    int error = fake_begin("cuStreamGetId");

    if (error != FAKE_SUCCESS || stream == NULL || getenv("FAKE_GPU_NO_IDS") != NULL) {
        return error != FAKE_SUCCESS ? error : FAKE_INVALID_HANDLE;
    }
    *id = stream->id;
    return FAKE_SUCCESS;
}

/* Unlike the driver, which returns at once, waits until all operations are done. */
HVD_EXPORT int cuStreamDestroy_v2(struct fake_stream *stream)
{
    struct fake_stream **at = &streams;

    fake_begin_end("cuStreamDestroy");
    fake_count(&fake_counters()->streams, -1);
    pthread_mutex_lock(&lock);
    stream->must_stop = true;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    return fake_gpu_fails("cuStreamDestroy") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuEventCreate(struct fake_event **out, unsigned flags)
{
    int error = fake_begin("cuEventCreate");

    if (error != FAKE_SUCCESS) {
        return error;
    }
    *out = calloc(1, sizeof(**out));
    (*out)->context = fake_current();
    (*out)->owners = 1;
    (*out)->has_time = (flags & DISABLE_TIMING) == 0;
    fake_count(&fake_counters()->events, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuEventDestroy_v2(struct fake_event *event)
{
    fake_begin_end("cuEventDestroy");
    pthread_mutex_lock(&lock);
    drop_event(event);
    pthread_mutex_unlock(&lock);
    fake_count(&fake_counters()->events, -1);
    return fake_gpu_fails("cuEventDestroy") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuEventRecord(struct fake_event *event, struct fake_stream *stream)
{
    struct op op = {.kind = RECORD, .event = event};
    int error = fake_begin("cuEventRecord");

    if (error != FAKE_SUCCESS || event->context != fake_stream_context(stream)) {
        return error != FAKE_SUCCESS ? error : FAKE_INVALID_HANDLE;
    }
    event->is_captured = stream != NULL && fake_capture_has(stream);
    if (event->is_captured) {
        return FAKE_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    event->owners++;
    op.recording = ++event->recorded;
    event->was_asked = false;
    pthread_mutex_unlock(&lock);
    put(stream, &op);
    return FAKE_SUCCESS;
}

/* A real idle device reaches an event in microseconds, but a stream here only when its
 * thread gets a CPU. So a caller that queries a timed event again, as in a loop with a
 * time limit, waits here until the event is reached. */
HVD_EXPORT int cuEventQuery(struct fake_event *event)
{
    bool is_reached;

    if (fake_gpu_fails("cuEventQuery")) {
        return FAKE_INVALID_VALUE;
    }
    if (fake_capture_forbids("cuEventQuery")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    if (event->is_captured) {
        return fake_capture_break(NULL, FAKE_CAPTURED_EVENT, "a captured event is asked");
    }
    pthread_mutex_lock(&lock);
    while (event->has_time && event->was_asked && event->reached < event->recorded) {
        pthread_cond_wait(&changed, &lock);
    }
    event->was_asked = true;
    is_reached = event->reached == event->recorded;
    pthread_mutex_unlock(&lock);
    return is_reached ? FAKE_SUCCESS : FAKE_NOT_READY;
}

HVD_EXPORT int cuEventElapsedTime(float *ms, struct fake_event *from,
                                  struct fake_event *to)
{
    int error = fake_begin("cuEventElapsedTime");

    if (error != FAKE_SUCCESS) {
        return error;
    }
    pthread_mutex_lock(&lock);
    if (from->context != to->context || !from->has_time || !to->has_time ||
        from->recorded == 0 || to->recorded == 0) {
        error = FAKE_INVALID_HANDLE;
    } else if (from->reached < from->recorded || to->reached < to->recorded) {
        error = FAKE_NOT_READY;
    } else {
        *ms = (float)(to->reached_ms - from->reached_ms);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

HVD_EXPORT int cuStreamWaitEvent(struct fake_stream *stream, struct fake_event *event,
                                 unsigned flags)
{
    struct op op = {.kind = WAIT, .event = event};
    bool captures = stream != NULL && fake_capture_has(stream);
    int error = fake_begin("cuStreamWaitEvent");

    (void)flags;
    if (error != FAKE_SUCCESS) {
        return error;
    }
    /* CUDA would capture the other stream, too; for hvd this is an error */
    if (captures != event->is_captured) {
        return fake_capture_break(captures ? stream : NULL, FAKE_CAPTURE_ISOLATION,
                                  "a captured stream and another wait for each other");
    }
    if (captures) {
        return FAKE_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    event->owners++;
    op.recording = event->recorded;
    pthread_mutex_unlock(&lock);
    put(stream, &op);
    return FAKE_SUCCESS;
}

/* Copies pageable memory as the driver does. A small copy to the device is staged before
 * the call returns. Any other copy blocks the thread until the copy, and all earlier work
 * on the stream, is done. */
static void copy_pageable(struct fake_stream *stream, struct op *op)
{
    bool is_done = false;

    if (fake_place_of(op->from) == FAKE_PAGEABLE && op->bytes <= STAGED_BYTES) {
        op->staged = malloc(op->bytes);
        memcpy(op->staged, op->from, op->bytes);
        op->from = op->staged;
        put(stream, op);
        return;
    }
    op->is_done = &is_done;
    put(stream, op);
    pthread_mutex_lock(&lock);
    while (!is_done) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

/* Ends the process if another thread copies pageable memory. Such a copy waits for all
 * earlier work on its stream: in a thread of hvd it would delay all collectives. */
static void must_be_main_thread(void)
{
    if ((pid_t)syscall(SYS_gettid) != getpid()) {
        fprintf(stderr, "fake GPU: a copy of pageable memory by another thread than the "
                        "main thread\n");
        abort();
    }
}

HVD_EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes,
                             struct fake_stream *stream)
{
    struct op op = {.kind = COPY,
                    .to = (void *)(uintptr_t)to,
                    .from = (const void *)(uintptr_t)from,
                    .bytes = bytes};
    int error = fake_begin("cuMemcpyAsync");

    if (error != FAKE_SUCCESS) {
        return error;
    }
    if (fake_takes_pageable() || (fake_place_of(op.to) != FAKE_PAGEABLE &&
                                  fake_place_of(op.from) != FAKE_PAGEABLE)) {
        put(stream, &op);
        return FAKE_SUCCESS;
    }
    if (stream != NULL && fake_capture_has(stream)) {
        return fake_capture_break(stream, FAKE_CAPTURE_UNSUPPORTED,
                                  "pageable memory is copied on a captured stream");
    }
    must_be_main_thread();
    copy_pageable(stream, &op);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count,
                               struct fake_stream *stream)
{
    int error = fake_begin("cuMemsetD8Async");

    if (error == FAKE_SUCCESS) {
        put(stream, &(struct op){.kind = SET,
                                 .to = (void *)(uintptr_t)to,
                                 .value = value,
                                 .bytes = count});
    }
    return error;
}
