/* SPDX-License-Identifier: Apache-2.0 */
/* The names of types and operations. */
#include <string.h>

#include "contrib/bench/hvd_bench/options.h"

static const struct {
    const char *name;
    enum hvd_op op;
} op_names[] = {
    {"sum", HVD_SUM}, {"average", HVD_AVERAGE}, {"avg", HVD_AVERAGE},
    {"min", HVD_MIN}, {"max", HVD_MAX},         {"product", HVD_PRODUCT},
};

int bench_dtype_find(const char *name)
{
    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        if (strcmp(name, hvd_dtype_name((enum hvd_dtype)dtype)) == 0) {
            return dtype;
        }
    }
    return -1;
}

int bench_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (strcmp(name, op_names[i].name) == 0) {
            return (int)op_names[i].op;
        }
    }
    return -1;
}

const char *bench_op_name(enum hvd_op op)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (op_names[i].op == op) {
            return op_names[i].name;
        }
    }
    return "?";
}
