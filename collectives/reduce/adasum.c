/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of Adasum. */
#include "collectives/reduce/adasum.h"

#include <stdint.h>
#include <string.h>

#include "collectives/reduce/reduce.h"
#include "gpu_binding/base/error.h"

enum {
    /* elements converted to float at a time: 2 KiB stay in the L1 cache */
    BLOCK_ELEMENTS = 1024,
    /* Independent partial sums, so that additions do not wait for each other and the
     * compiler cannot reorder them. */
    LANES = 8,
};

#define NAME(verb) verb##_float32
#define TYPE float
#include "collectives/reduce/adasum_kernels.inc"

#define NAME(verb) verb##_float64
#define TYPE double
#include "collectives/reduce/adasum_kernels.inc"

int hvd_adasum_check(const char *name, enum hvd_dtype dtype, int ranks,
                     struct hvd_error *err)
{
    if (dtype != HVD_FLOAT16 && dtype != HVD_BFLOAT16 && dtype != HVD_FLOAT32 &&
        dtype != HVD_FLOAT64) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "tensor %s: Adasum takes float16, bfloat16, float32 and float64, "
                        "not %s",
                        name, hvd_dtype_name(dtype));
    }
    if ((ranks & (ranks - 1)) != 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "Running Adasum with non-power of 2 ranks is not supported yet.");
    }
    return 0;
}

enum hvd_dtype hvd_adasum_work_dtype(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT64 ? HVD_FLOAT64 : HVD_FLOAT32;
}

/* Copies each block first, because the converted elements may overwrite it. */
static void load_widened(enum hvd_dtype dtype, double factor, const char *raw,
                         float *work, size_t count)
{
    struct hvd_reduction widening = hvd_reduction_of(dtype, HVD_SUM);
    uint16_t block[BLOCK_ELEMENTS];
    const void *const source = block;

    widening.prescale = factor;
    widening.to_partial = true;
    for (size_t first = 0; first < count; first += BLOCK_ELEMENTS) {
        size_t left = count - first;
        size_t now = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;

        memcpy(block, raw + first * sizeof(block[0]), now * sizeof(block[0]));
        hvd_reduce(&widening, &source, 1, now, work + first);
    }
}

void hvd_adasum_load(enum hvd_dtype dtype, double factor, const void *raw, void *work,
                     size_t count)
{
    if (dtype == hvd_adasum_work_dtype(dtype)) {
        hvd_scale(dtype, factor, raw, work, count);
    } else {
        load_widened(dtype, factor, raw, work, count);
    }
}

void hvd_adasum_store(enum hvd_dtype dtype, double factor, const void *work, void *out,
                      size_t count)
{
    struct hvd_reduction rounding = hvd_reduction_of(dtype, HVD_SUM);

    rounding.postscale = factor;
    rounding.from_partial = true;
    hvd_reduce(&rounding, &work, 1, count, out);
}

struct hvd_adasum_sums hvd_adasum_measure(enum hvd_dtype work_dtype, const void *left,
                                          const void *right, size_t count)
{
    return work_dtype == HVD_FLOAT64 ? measure_float64(left, right, count)
                                     : measure_float32(left, right, count);
}

static double factor_of(double dot, double square)
{
    return square == 0 ? 1.0 : 1.0 - dot / square * 0.5;
}

void hvd_adasum_combine(enum hvd_dtype work_dtype, const struct hvd_adasum_sums *sums,
                        void *left, const void *right, size_t count)
{
    double of_left = factor_of(sums->dot, sums->left);
    double of_right = factor_of(sums->dot, sums->right);

    if (work_dtype == HVD_FLOAT64) {
        combine_float64(of_left, of_right, left, right, count);
    } else {
        combine_float32(of_left, of_right, left, right, count);
    }
}
