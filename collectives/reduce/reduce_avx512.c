/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops for x86-64 CPUs with AVX-512 F, BW, DQ and VL. The conversion to
 * bfloat16 of AVX512-BF16 is not used: it takes subnormals for zero, so results would
 * depend on the CPU. */
#include "collectives/reduce/reduce_levels.h"

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "collectives/reduce/divide.h"
#include "gpu_binding/base/attr.h"

HVD_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl")

#define LANES 16
#define WIDTH (LANES + LANES)

typedef __m512 vector;
typedef vector vector_op(vector a, vector b);

/* A pair of vectors, in the layout in which bfloat16 is converted fastest. */
typedef struct {
    vector first;
    vector second;
} vectors;

static inline vector plain_nan(vector value)
{
    __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);

    return _mm512_mask_blend_ps(is_nan, value, _mm512_set1_ps(NAN));
}

static inline vector raw_sum(vector a, vector b)
{
    return _mm512_add_ps(a, b);
}

static inline vector raw_product(vector a, vector b)
{
    return _mm512_mul_ps(a, b);
}

static inline vector plus(vector a, vector b)
{
    return plain_nan(raw_sum(a, b));
}

static inline vector times(vector a, vector b)
{
    return plain_nan(raw_product(a, b));
}

/* The range instruction orders -0 below +0, but prefers numbers to NaN. */
static inline vector lesser(vector a, vector b)
{
    __mmask16 has_nan = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    vector least = _mm512_range_ps(a, b, 4);

    return _mm512_mask_blend_ps(has_nan, least, _mm512_set1_ps(NAN));
}

static inline vector greater(vector a, vector b)
{
    __mmask16 has_nan = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    vector most = _mm512_range_ps(a, b, 5);

    return _mm512_mask_blend_ps(has_nan, most, _mm512_set1_ps(NAN));
}

static inline vector vector_of(float value)
{
    return _mm512_set1_ps(value);
}

static inline __mmask16 mask_of(size_t lanes)
{
    return (__mmask16)((1u << lanes) - 1);
}

static inline vector load_float32(const float *from, size_t lanes)
{
    return lanes == LANES ? _mm512_loadu_ps(from)
                          : _mm512_maskz_loadu_ps(mask_of(lanes), from);
}

static inline void store_float32(vector value, float *to, size_t lanes)
{
    if (lanes == LANES) {
        _mm512_storeu_ps(to, value);
    } else {
        _mm512_mask_storeu_ps(to, mask_of(lanes), value);
    }
}

static inline __m256i load_halves(const uint16_t *from, size_t lanes)
{
    return lanes == LANES ? _mm256_loadu_si256((const void *)from)
                          : _mm256_maskz_loadu_epi16(mask_of(lanes), from);
}

static inline void store_halves(__m256i value, uint16_t *to, size_t lanes)
{
    if (lanes == LANES) {
        _mm256_storeu_si256((void *)to, value);
    } else {
        _mm256_mask_storeu_epi16(to, mask_of(lanes), value);
    }
}

static inline vector load_float16(const uint16_t *from, size_t lanes)
{
    return _mm512_cvtph_ps(load_halves(from, lanes));
}

static inline void store_float16(vector value, uint16_t *to, size_t lanes)
{
    store_halves(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT), to, lanes);
}

static inline vector load_bfloat16(const uint16_t *from, size_t lanes)
{
    __m512i wide = _mm512_cvtepu16_epi32(load_halves(from, lanes));

    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline void store_bfloat16(vector value, uint16_t *to, size_t lanes)
{
    __m512i bits = _mm512_castps_si512(value);
    __m512i upper = _mm512_srli_epi32(bits, 16);
    __m512i is_odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i middle = _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7fff));
    __m512i nearest = _mm512_srli_epi32(_mm512_add_epi32(bits, middle), 16);
    __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    __m512i wide = _mm512_mask_or_epi32(nearest, is_nan, upper, _mm512_set1_epi32(0x40));

    store_halves(_mm512_cvtepi32_epi16(wide), to, lanes);
}

static inline vectors tidy(vectors value)
{
    return (vectors){plain_nan(value.first), plain_nan(value.second)};
}

/* The first vector holds the elements with even index, the second those with odd
 * index. */
static inline vectors fetch_bfloat16(const uint16_t *from, size_t lanes)
{
    __mmask32 mask = (__mmask32)(((uint64_t)1 << lanes) - 1);
    __m512i both =
        lanes == WIDTH ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(mask, from);

    return (vectors){
        _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
        _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32((int)0xffff0000)))};
}

/* Rounds the bits of a float to the upper half. It is wrong for a NaN with a payload. */
static inline __m512i rounded(vector value)
{
    __m512i bits = _mm512_castps_si512(value);
    __mmask16 is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    __m512i above = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));

    return _mm512_mask_add_epi32(above, is_odd, bits, _mm512_set1_epi32(0x8000));
}

static inline void put_bfloat16(vectors value, uint16_t *to, size_t lanes)
{
    __m512i even = _mm512_srli_epi32(rounded(value.first), 16);
    __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaa, even, rounded(value.second));

    if (lanes == WIDTH) {
        _mm512_storeu_si512(to, both);
    } else {
        _mm512_mask_storeu_epi16(to, (__mmask32)(((uint64_t)1 << lanes) - 1), both);
    }
}

#define TABLE hvd_kernels_avx512
#include "collectives/reduce/reduce_kernels.inc"

HVD_TARGET_END
