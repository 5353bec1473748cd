/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops for 64-bit ARM CPUs, all of which have these instructions. */
#include "collectives/reduce/reduce_levels.h"

#include <arm_neon.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "collectives/reduce/divide.h"
#include "gpu_binding/base/attr.h"

#define LANES 4
#define WIDTH (LANES + LANES)

typedef float32x4_t vector;
typedef vector vector_op(vector a, vector b);

/* A pair of vectors, in the layout in which bfloat16 is converted fastest. */
typedef struct {
    vector first;
    vector second;
} vectors;

static inline vector plain_nan(vector value)
{
    return vbslq_f32(vceqq_f32(value, value), value, vdupq_n_f32(NAN));
}

static inline vector raw_sum(vector a, vector b)
{
    return vaddq_f32(a, b);
}

static inline vector raw_product(vector a, vector b)
{
    return vmulq_f32(a, b);
}

static inline vector plus(vector a, vector b)
{
    return plain_nan(raw_sum(a, b));
}

static inline vector times(vector a, vector b)
{
    return plain_nan(raw_product(a, b));
}

/* The instructions order -0 below +0 and return NaN if either operand is NaN. */
static inline vector lesser(vector a, vector b)
{
    return plain_nan(vminq_f32(a, b));
}

static inline vector greater(vector a, vector b)
{
    return plain_nan(vmaxq_f32(a, b));
}

static inline vector vector_of(float value)
{
    return vdupq_n_f32(value);
}

static inline vector load_float32(const float *from, size_t lanes)
{
    float whole[LANES] = {0};

    if (lanes == LANES) {
        return vld1q_f32(from);
    }
    memcpy(whole, from, lanes * sizeof(*from));
    return vld1q_f32(whole);
}

static inline void store_float32(vector value, float *to, size_t lanes)
{
    float whole[LANES];

    if (lanes == LANES) {
        vst1q_f32(to, value);
        return;
    }
    vst1q_f32(whole, value);
    memcpy(to, whole, lanes * sizeof(*to));
}

static inline uint16x4_t load_halves(const uint16_t *from, size_t lanes)
{
    uint16_t whole[LANES] = {0};

    if (lanes == LANES) {
        return vld1_u16(from);
    }
    memcpy(whole, from, lanes * sizeof(*from));
    return vld1_u16(whole);
}

static inline void store_halves(uint16x4_t value, uint16_t *to, size_t lanes)
{
    uint16_t whole[LANES];

    if (lanes == LANES) {
        vst1_u16(to, value);
        return;
    }
    vst1_u16(whole, value);
    memcpy(to, whole, lanes * sizeof(*to));
}

/* Every 64-bit ARM CPU converts vectors of float16, but not every one adds them. */
static inline vector load_float16(const uint16_t *from, size_t lanes)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(load_halves(from, lanes)));
}

static inline void store_float16(vector value, uint16_t *to, size_t lanes)
{
    store_halves(vreinterpret_u16_f16(vcvt_f16_f32(value)), to, lanes);
}

static inline vector load_bfloat16(const uint16_t *from, size_t lanes)
{
    return vreinterpretq_f32_u32(vshll_n_u16(load_halves(from, lanes), 16));
}

/* Rounds each float to its upper half. It is wrong for a NaN with a payload. */
static inline uint16x4_t rounded(vector value)
{
    uint32x4_t bits = vreinterpretq_u32_f32(value);
    uint32x4_t is_odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));

    return vaddhn_u32(bits, vaddq_u32(is_odd, vdupq_n_u32(0x7fff)));
}

static inline void store_bfloat16(vector value, uint16_t *to, size_t lanes)
{
    uint16x4_t quiet =
        vorr_u16(vshrn_n_u32(vreinterpretq_u32_f32(value), 16), vdup_n_u16(0x40));
    uint16x4_t is_number = vmovn_u32(vceqq_f32(value, value));

    store_halves(vbsl_u16(is_number, rounded(value), quiet), to, lanes);
}

static inline vectors tidy(vectors value)
{
    return (vectors){plain_nan(value.first), plain_nan(value.second)};
}

static inline vectors fetch_bfloat16(const uint16_t *from, size_t lanes)
{
    size_t first = lanes < LANES ? lanes : LANES;

    return (vectors){load_bfloat16(from, first),
                     load_bfloat16(from + first, lanes - first)};
}

static inline void put_bfloat16(vectors value, uint16_t *to, size_t lanes)
{
    size_t first = lanes < LANES ? lanes : LANES;

    store_halves(rounded(value.first), to, first);
    store_halves(rounded(value.second), to + first, lanes - first);
}

#define TABLE hvd_kernels_neon
#include "collectives/reduce/reduce_kernels.inc"
