/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the stand-in for the CUDA driver share. */
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
};

struct fake_live *fake_counters(void);
void fake_count(int *counter, int change);

/* --- contexts --- */

struct fake_context; /* the primary one of a device */

struct fake_context *fake_current(void); /* the thread's; NULL: none */
int fake_number(const struct fake_context *context); /* of its device */

/* At the beginning of a function of the driver that needs a context: FAKE_SUCCESS, or
 * what it has to return. */
int fake_begin(const char *function);

/* At that of one which ends a thing, and does so in any case: no context ends the
 * process, unless a test has made a call fail. */
void fake_begin_end(const char *function);

/* --- streams --- */

/* Of this stream, NULL: of the current context's default stream. */
struct fake_context *fake_stream_context(const struct fake_stream *stream);

/* Whose stream's thread this is; NULL: another thread. */
struct fake_context *fake_acting(void);

void fake_drain_streams(
    const struct fake_context *context); /* waits until all of its are idle */

/* What is put on a stream that has this goes into a graph, and never runs. */
bool fake_capture_has(const struct fake_stream *stream);

/* Whether the thread may not make a call that is unsafe while another captures, or it
 * does itself: it has to return FAKE_CAPTURE_UNSUPPORTED, and the captures that forbid it
 * are invalid from now on. */
bool fake_capture_forbids(const char *function);

/* The capture of a stream, NULL: all, becomes invalid. Returns error. */
int fake_capture_break(const struct fake_stream *stream, int error, const char *why);

/* --- memory --- */

enum fake_place {
    FAKE_PAGEABLE, /* the host's, as malloc gives it */
    FAKE_PINNED,
    FAKE_ON_DEVICE,
};

enum fake_place fake_place_of(const void *address);

/* FAKE_GPU_PAGEABLE: pageable memory passes for a device's. */
bool fake_takes_pageable(void);

#endif
