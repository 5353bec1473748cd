/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the names and sizes of the element types, on which messages and front ends
 * rely. */
#include <string.h>

#include "collectives/hvd.h"
#include "tests/tap.h"

static const struct {
    enum hvd_dtype dtype;
    const char *name;
    size_t bytes;
} known[] = {
    {HVD_UINT8, "uint8", 1},     {HVD_INT8, "int8", 1},
    {HVD_UINT16, "uint16", 2},   {HVD_INT16, "int16", 2},
    {HVD_UINT32, "uint32", 4},   {HVD_INT32, "int32", 4},
    {HVD_UINT64, "uint64", 8},   {HVD_INT64, "int64", 8},
    {HVD_FLOAT16, "float16", 2}, {HVD_BFLOAT16, "bfloat16", 2},
    {HVD_FLOAT32, "float32", 4}, {HVD_FLOAT64, "float64", 8},
    {HVD_BOOL, "bool", 1},
};

static void test_dtypes(void)
{
    const int strange[] = {-1, HVD_DTYPE_COUNT};
    size_t count = sizeof(known) / sizeof(known[0]);

    tap_ok(count == HVD_DTYPE_COUNT, "this test knows all types");
    for (size_t i = 0; i < count; i++) {
        tap_ok(strcmp(hvd_dtype_name(known[i].dtype), known[i].name) == 0 &&
                   hvd_dtype_bytes(known[i].dtype) == known[i].bytes,
               "%s has %zu bytes", known[i].name, known[i].bytes);
    }
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        enum hvd_dtype dtype = (enum hvd_dtype)strange[i];

        tap_ok(hvd_dtype_bytes(dtype) == 0 &&
                   strcmp(hvd_dtype_name(dtype), "unknown") == 0,
               "%d is not a type", strange[i]);
    }
}

int main(void)
{
    test_dtypes();
    return tap_done();
}
