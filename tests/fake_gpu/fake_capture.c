/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the stand-in that are being captured into a graph, and the calls that a
 * capture forbids to all threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

/* CUstreamCaptureMode, and CUstreamCaptureStatus */
enum {
    GLOBAL = 0,
    RELAXED = 2,
    STATUS_NONE = 0,
    STATUS_ACTIVE = 1,
    STATUS_INVALID = 2,
};

struct capture {
    struct capture *next;
    const struct fake_stream *stream;
    pthread_t thread; /* the thread that began the capture */
    int mode;
    bool is_invalid;
};

static _Thread_local int thread_mode = GLOBAL;
static struct capture *captures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The lock is held. */
static struct capture **find(const struct fake_stream *stream)
{
    struct capture **at = &captures;

    while (*at != NULL && (*at)->stream != stream) {
        at = &(*at)->next;
    }
    return at;
}

bool fake_capture_has(const struct fake_stream *stream)
{
    bool has;

    pthread_mutex_lock(&lock);
    has = *find(stream) != NULL;
    pthread_mutex_unlock(&lock);
    return has;
}

int fake_capture_break(const struct fake_stream *stream, int error, const char *why)
{
    fprintf(stderr, "fake GPU: %s\n", why);
    pthread_mutex_lock(&lock);
    for (struct capture *each = captures; each != NULL; each = each->next) {
        each->is_invalid |= stream == NULL || each->stream == stream;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Whether this capture forbids this thread to make unsafe calls. The lock is held. */
static bool is_in_the_way(const struct capture *capture)
{
    return pthread_equal(capture->thread, pthread_self())
               ? capture->mode != RELAXED
               : capture->mode == GLOBAL && thread_mode == GLOBAL;
}

bool fake_capture_forbids(const char *function)
{
    bool forbids = false;

    pthread_mutex_lock(&lock);
    for (struct capture *each = captures; each != NULL; each = each->next) {
        if (thread_mode != RELAXED && is_in_the_way(each)) {
            each->is_invalid = true;
            forbids = true;
        }
    }
    pthread_mutex_unlock(&lock);
    if (forbids) {
        fprintf(stderr, "fake GPU: %s while a stream is captured\n", function);
    }
    return forbids;
}

/* --- functions of the driver. cuThreadExchangeStreamCaptureMode is never made to fail:
 * callers could not react to it --- */

HVD_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = thread_mode;

    if (*mode < GLOBAL || *mode > RELAXED) {
        return FAKE_INVALID_VALUE;
    }
    thread_mode = *mode;
    *mode = before;
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuStreamIsCapturing(const struct fake_stream *stream, int *status)
{
    const struct capture *capture;
    int error = fake_begin("cuStreamIsCapturing");

    if (error != FAKE_SUCCESS) {
        return error;
    }
    pthread_mutex_lock(&lock);
    capture = *find(stream);
    *status = capture == NULL       ? STATUS_NONE
              : capture->is_invalid ? STATUS_INVALID
                                    : STATUS_ACTIVE;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuStreamBeginCapture_v2(const struct fake_stream *stream, int mode)
{
    struct capture *capture = calloc(1, sizeof(*capture));

    if (capture == NULL || stream == NULL || fake_capture_has(stream)) {
        free(capture);
        return FAKE_INVALID_VALUE;
    }
    capture->stream = stream;
    capture->thread = pthread_self();
    capture->mode = mode;
    pthread_mutex_lock(&lock);
    capture->next = captures;
    captures = capture;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

/* Sets *graph to NULL: captured work is dropped. */
HVD_EXPORT int cuStreamEndCapture(const struct fake_stream *stream, void **graph)
{
    struct capture **at, *capture;
    int error;

    *graph = NULL;
    pthread_mutex_lock(&lock);
    at = find(stream);
    capture = *at;
    if (capture != NULL) {
        *at = capture->next;
    }
    pthread_mutex_unlock(&lock);
    error = capture == NULL       ? FAKE_INVALID_VALUE
            : capture->is_invalid ? FAKE_CAPTURE_INVALIDATED
                                  : FAKE_SUCCESS;
    free(capture);
    return error;
}
