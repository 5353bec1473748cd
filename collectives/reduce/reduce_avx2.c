/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops for x86-64 CPUs with AVX2 and F16C. */
#include "collectives/reduce/reduce_levels.h"

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "collectives/reduce/divide.h"
#include "gpu_binding/base/attr.h"

HVD_TARGET_BEGIN("avx2,f16c")

#define LANES 8
#define WIDTH (LANES + LANES)

typedef __m256 vector;
typedef vector vector_op(vector a, vector b);

/* A pair of vectors, in the layout in which bfloat16 is converted fastest. */
typedef struct {
    vector first;
    vector second;
} vectors;

static inline vector plain_nan(vector value)
{
    vector is_nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);

    return _mm256_blendv_ps(value, _mm256_set1_ps(NAN), is_nan);
}

static inline vector raw_sum(vector a, vector b)
{
    return _mm256_add_ps(a, b);
}

static inline vector raw_product(vector a, vector b)
{
    return _mm256_mul_ps(a, b);
}

static inline vector plus(vector a, vector b)
{
    return plain_nan(raw_sum(a, b));
}

static inline vector times(vector a, vector b)
{
    return plain_nan(raw_product(a, b));
}

/* The instruction returns its second operand if both are zero or one is NaN. So it is
 * computed in both orders. For two zeros this gives both of them, and their bits are
 * combined. For other numbers both results are equal. NaN is set at the end. */
static inline vector lesser(vector a, vector b)
{
    vector least = _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
    vector has_nan = _mm256_cmp_ps(a, b, _CMP_UNORD_Q);

    return _mm256_blendv_ps(least, _mm256_set1_ps(NAN), has_nan);
}

static inline vector greater(vector a, vector b)
{
    vector most = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
    vector has_nan = _mm256_cmp_ps(a, b, _CMP_UNORD_Q);

    return _mm256_blendv_ps(most, _mm256_set1_ps(NAN), has_nan);
}

static inline vector vector_of(float value)
{
    return _mm256_set1_ps(value);
}

static inline vector load_float32(const float *from, size_t lanes)
{
    float whole[LANES] = {0};

    if (lanes == LANES) {
        return _mm256_loadu_ps(from);
    }
    memcpy(whole, from, lanes * sizeof(*from));
    return _mm256_loadu_ps(whole);
}

static inline void store_float32(vector value, float *to, size_t lanes)
{
    float whole[LANES];

    if (lanes == LANES) {
        _mm256_storeu_ps(to, value);
        return;
    }
    _mm256_storeu_ps(whole, value);
    memcpy(to, whole, lanes * sizeof(*to));
}

static inline __m128i load_halves(const uint16_t *from, size_t lanes)
{
    uint16_t whole[LANES] = {0};

    if (lanes == LANES) {
        return _mm_loadu_si128((const void *)from);
    }
    memcpy(whole, from, lanes * sizeof(*from));
    return _mm_loadu_si128((const void *)whole);
}

static inline void store_halves(__m128i value, uint16_t *to, size_t lanes)
{
    uint16_t whole[LANES];

    if (lanes == LANES) {
        _mm_storeu_si128((void *)to, value);
        return;
    }
    _mm_storeu_si128((void *)whole, value);
    memcpy(to, whole, lanes * sizeof(*to));
}

static inline vector load_float16(const uint16_t *from, size_t lanes)
{
    return _mm256_cvtph_ps(load_halves(from, lanes));
}

static inline void store_float16(vector value, uint16_t *to, size_t lanes)
{
    store_halves(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT), to, lanes);
}

static inline vector load_bfloat16(const uint16_t *from, size_t lanes)
{
    __m256i wide = _mm256_cvtepu16_epi32(load_halves(from, lanes));

    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline void store_bfloat16(vector value, uint16_t *to, size_t lanes)
{
    __m256i bits = _mm256_castps_si256(value);
    __m256i upper = _mm256_srli_epi32(bits, 16);
    __m256i is_odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i middle = _mm256_add_epi32(is_odd, _mm256_set1_epi32(0x7fff));
    __m256i nearest = _mm256_srli_epi32(_mm256_add_epi32(bits, middle), 16);
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    vector is_nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
    __m256i wide = _mm256_blendv_epi8(nearest, quiet, _mm256_castps_si256(is_nan));
    __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));

    store_halves(halves, to, lanes);
}

/* NaN is rare: testing both vectors at once is cheaper than blending. */
static inline vectors tidy(vectors value)
{
    vector has_nan = _mm256_cmp_ps(value.first, value.second, _CMP_UNORD_Q);

    if (_mm256_movemask_ps(has_nan) != 0) {
        return (vectors){plain_nan(value.first), plain_nan(value.second)};
    }
    return value;
}

/* The first vector holds the elements with even index, the second those with odd
 * index. */
static inline vectors fetch_bfloat16(const uint16_t *from, size_t lanes)
{
    uint16_t whole[WIDTH] = {0};
    const uint16_t *start = from;
    __m256i both;

    if (lanes < WIDTH) {
        memcpy(whole, from, lanes * sizeof(*from));
        start = whole;
    }
    both = _mm256_loadu_si256((const void *)start);
    return (vectors){
        _mm256_castsi256_ps(_mm256_slli_epi32(both, 16)),
        _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000)))};
}

/* Rounds each float to its upper half, by 16-bit arithmetic on all upper and all lower
 * halves. It is wrong for a NaN with a payload. The average instruction rounds up: the
 * average of the lower half and 0x7ffe + is_odd has its top bit set if the lower half is
 * above the middle, or equal to it below an odd upper half. */
static inline __m256i upper_halves(vectors value)
{
    __m256i even = _mm256_castps_si256(value.first);
    __m256i odd = _mm256_castps_si256(value.second);
    __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
    __m256i lower = _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa);
    __m256i is_odd = _mm256_and_si256(upper, _mm256_set1_epi16(1));
    __m256i middle = _mm256_or_si256(is_odd, _mm256_set1_epi16(0x7ffe));
    __m256i carry = _mm256_srli_epi16(_mm256_avg_epu16(lower, middle), 15);

    return _mm256_add_epi16(upper, carry);
}

static inline void put_bfloat16(vectors value, uint16_t *to, size_t lanes)
{
    uint16_t whole[WIDTH];
    __m256i both = upper_halves(value);

    if (lanes == WIDTH) {
        _mm256_storeu_si256((void *)to, both);
        return;
    }
    _mm256_storeu_si256((void *)whole, both);
    memcpy(to, whole, lanes * sizeof(*to));
}

#define TABLE hvd_kernels_avx2
#include "collectives/reduce/reduce_kernels.inc"

HVD_TARGET_END
