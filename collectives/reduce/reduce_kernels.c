/* SPDX-License-Identifier: Apache-2.0 */
/* The table of inner loops: plain C that gcc and clang vectorise at -O3. */
#include "collectives/reduce/reduce_kernels.h"

#include <stdint.h>
#include <string.h>

#include "collectives/reduce/half.h"

#define NAME(verb) verb##_uint8
#define TYPE uint8_t
#define WIDE uint32_t
#define LEAST 0
#define MOST UINT8_MAX
#define FIT 255.0
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_int8
#define TYPE int8_t
#define WIDE uint32_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define FIT 127.0
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_uint16
#define TYPE uint16_t
#define WIDE uint32_t
#define LEAST 0
#define MOST UINT16_MAX
#define FIT 65535.0
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_int16
#define TYPE int16_t
#define WIDE uint32_t
#define LEAST INT16_MIN
#define MOST INT16_MAX
#define FIT 32767.0
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_uint32
#define TYPE uint32_t
#define WIDE uint32_t
#define LEAST 0
#define MOST UINT32_MAX
#define FIT 4294967295.0
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_int32
#define TYPE int32_t
#define WIDE uint32_t
#define LEAST INT32_MIN
#define MOST INT32_MAX
#define FIT 2147483647.0
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_uint64
#define TYPE uint64_t
#define WIDE uint64_t
#define LEAST 0
#define MOST UINT64_MAX
#define FIT 0x1.fffffffffffffp63
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_int64
#define TYPE int64_t
#define WIDE uint64_t
#define LEAST INT64_MIN
#define MOST INT64_MAX
#define FIT 0x1.fffffffffffffp62
#include "collectives/reduce/reduce_integer.inc"

#define NAME(verb) verb##_float32
#define TYPE float
#define BITS uint32_t
#include "collectives/reduce/reduce_float.inc"

#define NAME(verb) verb##_float64
#define TYPE double
#define BITS uint64_t
#include "collectives/reduce/reduce_float.inc"

static void either(void *out, const void *left, const void *right, size_t count)
{
    uint8_t *to = out;
    const uint8_t *a = left;
    const uint8_t *b = right;

    for (size_t i = 0; i < count; i++) {
        to[i] = (a[i] | b[i]) != 0;
    }
}

static void both(void *out, const void *left, const void *right, size_t count)
{
    uint8_t *to = out;
    const uint8_t *a = left;
    const uint8_t *b = right;

    for (size_t i = 0; i < count; i++) {
        to[i] = (a[i] != 0) & (b[i] != 0);
    }
}

static void widen_float16(const void *in, void *out, size_t count)
{
    const uint16_t *from = in;
    float *to = out;

    for (size_t i = 0; i < count; i++) {
        to[i] = hvd_float16_to_float(from[i]);
    }
}

static void narrow_float16(const void *in, void *out, size_t count)
{
    const float *from = in;
    uint16_t *to = out;

    for (size_t i = 0; i < count; i++) {
        to[i] = hvd_float_to_float16(from[i]);
    }
}

static void widen_bfloat16(const void *in, void *out, size_t count)
{
    const uint16_t *from = in;
    float *to = out;

    for (size_t i = 0; i < count; i++) {
        to[i] = hvd_bfloat16_to_float(from[i]);
    }
}

static void narrow_bfloat16(const void *in, void *out, size_t count)
{
    const float *from = in;
    uint16_t *to = out;

    for (size_t i = 0; i < count; i++) {
        to[i] = hvd_float_to_bfloat16(from[i]);
    }
}

/* Average is a sum to the kernels. */
#define COMBINE(type)                                                                    \
    .combine = {[HVD_AVERAGE] = sum_##type,                                              \
                [HVD_SUM] = sum_##type,                                                  \
                [HVD_MIN] = min_##type,                                                  \
                [HVD_MAX] = max_##type,                                                  \
                [HVD_PRODUCT] = product_##type},                                         \
    .scale = scale_##type

static const struct hvd_kernels kernels[HVD_DTYPE_COUNT] = {
    [HVD_UINT8] = {COMBINE(uint8)},
    [HVD_INT8] = {COMBINE(int8)},
    [HVD_UINT16] = {COMBINE(uint16)},
    [HVD_INT16] = {COMBINE(int16)},
    [HVD_INT32] = {COMBINE(int32)},
    [HVD_INT64] = {COMBINE(int64)},
    [HVD_UINT32] = {COMBINE(uint32)},
    [HVD_UINT64] = {COMBINE(uint64)},
    [HVD_FLOAT32] = {COMBINE(float32)},
    [HVD_FLOAT64] = {COMBINE(float64)},
    [HVD_FLOAT16] = {COMBINE(float32), .widen = widen_float16, .narrow = narrow_float16},
    [HVD_BFLOAT16] = {COMBINE(float32), .widen = widen_bfloat16,
                      .narrow = narrow_bfloat16},
    [HVD_BOOL] = {.combine = {[HVD_AVERAGE] = either,
                              [HVD_SUM] = either,
                              [HVD_MIN] = both,
                              [HVD_MAX] = either,
                              [HVD_PRODUCT] = both}},
};

const struct hvd_kernels *hvd_kernels_of(enum hvd_dtype dtype)
{
    return &kernels[dtype];
}
