/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplication of an array by a factor. */
#include <string.h>

#include "collectives/reduce/reduce.h"
#include "collectives/reduce/reduce_kernels.h"

void hvd_scale(enum hvd_dtype dtype, double factor, const void *in, void *out,
               size_t count)
{
    const struct hvd_kernels *kernels = hvd_kernels_of(dtype);

    if (factor == 1.0 || kernels->scale == NULL) {
        if (in != out) {
            memcpy(out, in, count * hvd_dtype_bytes(dtype));
        }
    } else if (kernels->widen != NULL) {
        kernels->scale_half(factor, in, out, count);
    } else {
        kernels->scale(factor, in, out, count);
    }
}
