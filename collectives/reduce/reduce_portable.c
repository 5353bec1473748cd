/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops for every CPU: vectors of a single float, which the compiler widens.
 * All other tables must give the same results as this one. */
#include "collectives/reduce/reduce_levels.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "collectives/reduce/divide.h"
#include "collectives/reduce/half.h"
#include "gpu_binding/base/attr.h"

#define LANES 1
#define WIDTH 1
#define SUM_ELEMENTS 512 /* 2 KiB of float, which stay in the L1 cache */

typedef float vector;
typedef float vectors;
typedef vector vector_op(vector a, vector b);

/* Makes every NaN the plain one: compilers may swap the operands of a sum, which decides
 * which NaN of two is returned. Uses a mask for the reason given in half.h. */
static inline vector plain_nan(vector value)
{
    uint32_t bits = hvd_float_bits(value);
    uint32_t is_nan = 0 - (uint32_t)(value != value);

    return hvd_float_from_bits((bits & ~is_nan) | (0x7fc00000 & is_nan));
}

static inline vector raw_sum(vector a, vector b)
{
    return a + b;
}

static inline vector raw_product(vector a, vector b)
{
    return a * b;
}

static inline vector plus(vector a, vector b)
{
    return plain_nan(a + b);
}

static inline vector times(vector a, vector b)
{
    return plain_nan(a * b);
}

/* Equal values differ in bits only if they are zeros of different sign: "or" makes -0 the
 * lesser and "and" makes +0 the greater, whichever comes first. */
static inline vector lesser(vector a, vector b)
{
    vector equal = hvd_float_from_bits(hvd_float_bits(a) | hvd_float_bits(b));
    vector unequal = ((a < b) | (a != a)) ? a : b;

    return plain_nan(a == b ? equal : unequal);
}

static inline vector greater(vector a, vector b)
{
    vector equal = hvd_float_from_bits(hvd_float_bits(a) & hvd_float_bits(b));
    vector unequal = ((a > b) | (a != a)) ? a : b;

    return plain_nan(a == b ? equal : unequal);
}

static HVD_ALWAYS_INLINE vectors each(vector_op *op, vectors a, vectors b)
{
    return op(a, b);
}

static inline vectors tidy(vectors value)
{
    return plain_nan(value);
}

static inline vectors spread(float value)
{
    return value;
}

static inline vector vector_of(float value)
{
    return value;
}

static inline vector load_float32(const float *from, size_t lanes HVD_UNUSED)
{
    return *from;
}

static inline void store_float32(vector value, float *to, size_t lanes HVD_UNUSED)
{
    *to = value;
}

static inline vector load_float16(const uint16_t *from, size_t lanes HVD_UNUSED)
{
    return hvd_float16_to_float(*from);
}

static inline void store_float16(vector value, uint16_t *to, size_t lanes HVD_UNUSED)
{
    *to = hvd_float_to_float16(value);
}

static inline vector load_bfloat16(const uint16_t *from, size_t lanes HVD_UNUSED)
{
    return hvd_bfloat16_to_float(*from);
}

static inline void store_bfloat16(vector value, uint16_t *to, size_t lanes HVD_UNUSED)
{
    *to = hvd_float_to_bfloat16(value);
}

#define fetch_float32 load_float32
#define put_float32 store_float32
#define fetch_float16 load_float16
#define put_float16 store_float16
#define fetch_bfloat16 load_bfloat16
#define put_bfloat16 store_bfloat16

#define TABLE hvd_kernels_portable
#include "collectives/reduce/reduce_kernels.inc"
