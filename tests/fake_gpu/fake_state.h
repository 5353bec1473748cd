/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for the CUDA driver: declarations shared by its parts. */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "tests/fake_gpu/fake_cuda.h"

/* CUresult */
enum {
    FAKE_SUCCESS = 0,
    FAKE_INVALID_VALUE = 1,
    FAKE_OUT_OF_MEMORY = 2,
    FAKE_NO_DEVICE = 100,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_NO_BINARY = 209,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_NOT_READY = 600,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_CAPTURE_ISOLATION = 905,
    FAKE_CAPTURED_EVENT = 907,
    FAKE_PEER_UNSUPPORTED = 217,
};

struct fake_live *fake_counters(void);
void fake_count(int *counter, int change);

/* Whether all processes have the same GPUs. */
bool fake_is_shared(void);
int fake_multiprocessors(void);

/* --- contexts --- */

struct fake_context; /* the primary context of a device */

struct fake_context *fake_current(void); /* the thread's current context; NULL: none */
int fake_number(const struct fake_context *context); /* number of the context's device */

/* Called first by functions of the driver that need a context. Returns FAKE_SUCCESS, or
 * the error that the function has to return. */
int fake_begin(const char *function);

/* Called first by functions that end an object and cannot refuse to. If there is no
 * context, aborts the process, unless a test has made a call fail. */
void fake_begin_end(const char *function);

/* --- streams --- */

/* Returns the context of the stream. NULL is the default stream of the current
 * context. */
struct fake_context *fake_stream_context(const struct fake_stream *stream);

/* Returns the context of the stream whose thread this is; NULL if this is another
 * thread. */
struct fake_context *fake_acting(void);

/* Waits until all streams of the context are idle; NULL: the streams of all contexts. */
void fake_drain_streams(const struct fake_context *context);

/* Whether the stream is being captured: operations on it go into a graph, and never
 * run. */
bool fake_capture_has(const struct fake_stream *stream);

/* Whether a capture, by this or another thread, forbids the thread to make an unsafe
 * call. Then the function has to return FAKE_CAPTURE_UNSUPPORTED, and the captures that
 * forbid it become invalid. */
bool fake_capture_forbids(const char *function);

/* Prints `why`, invalidates the capture of a stream (NULL: of all streams), and returns
 * `error`. */
int fake_capture_break(const struct fake_stream *stream, int error, const char *why);

/* --- memory --- */

enum fake_place {
    FAKE_PAGEABLE, /* host memory from malloc */
    FAKE_PINNED,
    FAKE_ON_DEVICE,
};

enum fake_place fake_place_of(const void *address);

/* Whether FAKE_GPU_PAGEABLE is set: pageable memory is accepted as device memory. */
bool fake_takes_pageable(void);

#endif
