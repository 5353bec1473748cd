/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the stand-in for NCCL. */
#ifndef FAKE_REDUCE_H
#define FAKE_REDUCE_H

#include <stddef.h>

/* ncclDataType_t and ncclRedOp_t; numbers from FAKE_SCALED on are sums with a factor. */
enum fake_dtype {
    FAKE_INT8,
    FAKE_UINT8,
    FAKE_INT32,
    FAKE_UINT32,
    FAKE_INT64,
    FAKE_UINT64,
    FAKE_FLOAT16,
    FAKE_FLOAT32,
    FAKE_FLOAT64,
    FAKE_BFLOAT16,
    FAKE_DTYPES
};

enum fake_op {
    FAKE_SUM,
    FAKE_PROD,
    FAKE_MAX,
    FAKE_MIN,
    FAKE_AVG,
    FAKE_SCALED,
};

size_t fake_dtype_bytes(int dtype);

/* Returns the value of a factor that is stored in this type. */
double fake_scalar(int dtype, const void *scalar);

/* Computes to[i] = op over the sources, each times factor, in order. `to` may be a
 * source. */
void fake_reduce(int dtype, int op, double factor, const void *const *sources,
                 int source_count, size_t count, void *to);

#endif
