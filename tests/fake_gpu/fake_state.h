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
};

struct fake_live *fake_counters(void);
void fake_count(int *counter, int change);
bool fake_has_context(void); /* on this thread */
void fake_drain_streams(void); /* waits until all streams are idle */

#endif
