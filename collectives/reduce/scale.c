/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplication of an array by a factor. */
#include <string.h>

#include "collectives/reduce/reduce.h"
#include "collectives/reduce/reduce_kernels.h"

static void scale_widened(const struct hvd_kernels *kernels, double factor,
                          const uint16_t *in, uint16_t *out, size_t count)
{
    _Alignas(64) float block[HVD_BLOCK_ELEMENTS];

    for (size_t first = 0; first < count; first += HVD_BLOCK_ELEMENTS) {
        size_t left = count - first;
        size_t now = left < HVD_BLOCK_ELEMENTS ? left : HVD_BLOCK_ELEMENTS;

        kernels->widen(in + first, block, now);
        kernels->scale(factor, block, block, now);
        kernels->narrow(block, out + first, now);
    }
}

void hvd_scale(enum hvd_dtype dtype, double factor, const void *in, void *out,
               size_t count)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(dtype);

    if (factor == 1.0 || kernels->scale == NULL) {
        if (in != out) {
            memcpy(out, in, count * hvd_dtype_bytes(dtype));
        }
    } else if (kernels->widen != NULL) {
        scale_widened(kernels, factor, in, out, count);
    } else {
        kernels->scale(factor, in, out, count);
    }
}
