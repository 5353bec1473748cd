/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of float32 as 16-bit floats, and back. */
#include "collectives/reduce/reduce.h"
#include "collectives/reduce/reduce_kernels.h"

void hvd_narrow(enum hvd_dtype dtype, double factor, const float *in, void *out,
                size_t count)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(dtype);
    _Alignas(64) float scaled[HVD_BLOCK_ELEMENTS];
    char *to = out;

    if (factor == 1.0) {
        kernels->narrow(in, out, count);
        return;
    }
    while (count > 0) {
        size_t block = count < HVD_BLOCK_ELEMENTS ? count : HVD_BLOCK_ELEMENTS;

        kernels->scale(factor, in, scaled, block);
        kernels->narrow(scaled, to, block);
        in += block;
        to += block * hvd_dtype_bytes(dtype);
        count -= block;
    }
}

void hvd_widen(enum hvd_dtype dtype, const void *in, float *out, size_t count)
{
    hvd_kernels_of(dtype)->widen(in, out, count);
}
