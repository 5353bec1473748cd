/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's C++ objects: what a kernel's context leads to. */
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
    void **parameters; /* [FAKE_PARAMETER_WORDS] */
};

/* As TensorFlow's allocator: any thread, no thread needs a context, and nothing is known
 * of streams. */
void *fake_device_memory(size_t bytes);

void fake_context_init(struct fake_context_words *context, bool is_on_gpu);
void fake_context_finish(struct fake_context_words *context);

#endif
