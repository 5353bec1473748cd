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
bool fake_has_context(void); /* on this thread */
void fake_drain_streams(void); /* waits until all streams are idle */

/* What is put on a stream that has this goes into a graph, and never runs. */
bool fake_capture_has(const struct fake_stream *stream);

/* Whether the thread may not make a call that is unsafe while another captures, or it does itself: it has to
 * return FAKE_CAPTURE_UNSUPPORTED, and the captures that forbid it are invalid from now on. */
bool fake_capture_forbids(const char *function);

/* The capture of a stream, NULL: all, becomes invalid. Returns error. */
int fake_capture_break(const struct fake_stream *stream, int error, const char *why);

#endif
