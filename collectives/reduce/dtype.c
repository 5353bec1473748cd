/* SPDX-License-Identifier: Apache-2.0 */
/* Name and size of each dtype. */
#include "collectives/hvd.h"

#include "collectives/reduce/reduce.h"
#include "gpu_binding/base/attr.h"

struct dtype_facts {
    const char *name;
    size_t bytes;
};

static const struct dtype_facts facts[HVD_DTYPE_COUNT] = {
    [HVD_UINT8] = {"uint8", 1},       [HVD_INT8] = {"int8", 1},
    [HVD_UINT16] = {"uint16", 2},     [HVD_INT16] = {"int16", 2},
    [HVD_INT32] = {"int32", 4},       [HVD_INT64] = {"int64", 8},
    [HVD_FLOAT16] = {"float16", 2},   [HVD_FLOAT32] = {"float32", 4},
    [HVD_FLOAT64] = {"float64", 8},   [HVD_BOOL] = {"bool", 1},
    [HVD_BFLOAT16] = {"bfloat16", 2}, [HVD_UINT32] = {"uint32", 4},
    [HVD_UINT64] = {"uint64", 8},
};

HVD_EXPORT size_t hvd_dtype_bytes(enum hvd_dtype dtype)
{
    return (unsigned)dtype < HVD_DTYPE_COUNT ? facts[dtype].bytes : 0;
}

size_t hvd_partial_bytes(enum hvd_dtype dtype)
{
    bool is_widened = dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16;

    return is_widened ? sizeof(float) : hvd_dtype_bytes(dtype);
}

HVD_EXPORT const char *hvd_dtype_name(enum hvd_dtype dtype)
{
    return (unsigned)dtype < HVD_DTYPE_COUNT ? facts[dtype].name : "unknown";
}
