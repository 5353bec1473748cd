/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ objects of the TensorFlow stand-in that the library reaches from a kernel's
 * context. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FAKE_CONTEXT_WORDS = 6,
    FAKE_PARAMETER_WORDS = 12,
};

/* The beginning of an OpKernelContext, and its parameters. */
struct fake_context_words {
    void *words[FAKE_CONTEXT_WORDS];
    void **parameters; /* an array of FAKE_PARAMETER_WORDS */
};

/* Allocates memory on the device, as TensorFlow's allocator does: from any thread,
 * without a CUDA context and without regard to streams. */
void *fake_device_memory(size_t bytes);

void fake_context_init(struct fake_context_words *context, bool is_on_gpu);
void fake_context_finish(struct fake_context_words *context);

#endif
