/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ objects of the TensorFlow stand-in, in the layout of the C++ ABI of Linux. An
 * object begins with a pointer to the third word of its virtual table. The second word of
 * the table points to the type_info, whose second word points to the type's name. The
 * other words of a kernel's context are numbers and invalid addresses. */
#include "tests/python/native/tensorflow/fake_device.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/python/native/tensorflow/fake_tensorflow.h"

enum {
    ARENA_BYTES = 16 << 20,
};

struct type {
    const void *information_table;
    const char *name;
};

struct table {
    const void *offset;
    const struct type *type;
    const void *functions[2];
};

struct stream {
    const void *table;
    void *handle; /* CUDA's stream */
};

struct device_context {
    const void *table;
    struct stream *stream;
};

struct information {
    struct stream *stream;
    struct device_context *context;
    void *managed;
};

struct device {
    const void *table;
    struct information *information;
};

static const struct type device_type = {.name = "N10tensorflow9GPUDeviceE"};
static const struct type cpu_type = {.name = "N10tensorflow16ThreadPoolDeviceE"};
static const struct type context_type = {.name = "N10tensorflow16GPUDeviceContextE"};
static const struct type stream_type = {.name = "N15stream_executor3gpu10CudaStreamE"};

/* A TensorFlow for CPUs does not export the virtual table of GPUDevice. */
#if FAKE_TENSORFLOW == 1
#define _ZTVN10tensorflow9GPUDeviceE another_table
#endif
extern const struct table _ZTVN10tensorflow9GPUDeviceE;
HVD_EXPORT const struct table _ZTVN10tensorflow9GPUDeviceE = {.type = &device_type};
static const struct table cpu_table = {.type = &cpu_type};
static const struct table context_table = {.type = &context_type};
static const struct table stream_table = {.type = &stream_type};

static struct stream stream = {.table = stream_table.functions};
static struct device_context own_context = {.table = context_table.functions,
                                            .stream = &stream};
static struct information information = {.stream = &stream, .context = &own_context};
static struct device gpu = {.table = _ZTVN10tensorflow9GPUDeviceE.functions,
                            .information = &information};
static struct device cpu = {.table = cpu_table.functions};
static bool is_lost;
static char *arena; /* device memory from which outputs are allocated */
static atomic_size_t arena_used;

void fake_use_stream(void *handle)
{
    stream.handle = handle;
    arena = gpu_memory(ARENA_BYTES);
}

void *fake_device_memory(size_t bytes)
{
    size_t at = atomic_fetch_add(&arena_used, (bytes + 256) / 256 * 256);

    return at + bytes < ARENA_BYTES ? arena + at : NULL;
}

void fake_lose_device(void)
{
    is_lost = true;
}

/* --- TensorFlow's functions --- */

HVD_EXPORT const void *_ZNK10tensorflow10DeviceBase34tensorflow_accelerator_device_infoEv(
    const struct device *at)
{
    return at->information;
}

HVD_EXPORT const void *
_ZNK10tensorflow16GPUDeviceContext6streamEv(const struct device_context *at)
{
    return at->stream;
}

#if FAKE_TENSORFLOW == 221
HVD_EXPORT void *
_ZNK15stream_executor3gpu10CudaStream24platform_specific_handleEv(const struct stream *at)
{
    return at->handle;
}
#elif FAKE_TENSORFLOW >= 212
HVD_EXPORT void *
_ZN15stream_executor3gpu16AsGpuStreamValueEPNS_6StreamE(const struct stream *at)
{
    return at->handle;
}
#endif

/* --- contexts --- */

void fake_context_init(struct fake_context_words *context, bool is_on_gpu)
{
    const int parameters_at = FAKE_TENSORFLOW == FAKE_2_21 ? 3 : 2;
    const int device_at = FAKE_TENSORFLOW == FAKE_2_21 ? 5 : 6;

    context->parameters = calloc(FAKE_PARAMETER_WORDS, sizeof(context->parameters[0]));
    for (uintptr_t i = 0; i < FAKE_PARAMETER_WORDS; i++) {
        context->parameters[i] = (void *)(i % 3 == 0 ? i : 0x10000000000 * i + 8 * i);
    }
    for (uintptr_t i = 0; i < FAKE_CONTEXT_WORDS; i++) {
        context->words[i] = (void *)(i % 2 == 0 ? i : UINTPTR_MAX - i);
    }
    context->words[parameters_at] = context->parameters;
    context->parameters[device_at] = !is_on_gpu ? &cpu : is_lost ? NULL : &gpu;
}

void fake_context_finish(struct fake_context_words *context)
{
    free(context->parameters);
}
