/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a collective with random data, and its expected result. */
#include "tests/collectives/test_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/rank_values.h"

void *case_array(enum hvd_dtype dtype, int64_t count)
{
    size_t bytes = (size_t)count * hvd_dtype_bytes(dtype);
    char *array = malloc(bytes > 0 ? bytes : 1);

    if (array == NULL) {
        fprintf(stderr, "# no memory\n");
        exit(1);
    }
    memset(array, 0x5a, bytes);
    return array;
}

void *case_input(const struct test_case *c, int rank, int64_t count)
{
    void *array = case_array(c->dtype, count);

    for (int64_t i = 0; i < count; i++) {
        value_store(c->dtype, array, i, value_of(c->seed, rank, i, c->dtype, c->op));
    }
    return array;
}

static double scaled(enum hvd_dtype dtype, double factor, double value)
{
    if (factor == 1.0 || dtype == HVD_BOOL) {
        return value;
    }
    return value_is_float(dtype) ? factor * value : trunc(factor * value);
}

static double combine(enum hvd_op op, double a, double b)
{
    switch (op) {
    case HVD_MIN:
        return a < b ? a : b;
    case HVD_MAX:
        return a > b ? a : b;
    case HVD_PRODUCT:
        return a * b;
    case HVD_BAND:
        return (double)((int64_t)a & (int64_t)b);
    case HVD_BOR:
        return (double)((int64_t)a | (int64_t)b);
    case HVD_BXOR:
        return (double)((int64_t)a ^ (int64_t)b);
    default:
        return a + b;
    }
}

double case_reduced(const struct test_case *c, int size, int64_t index)
{
    double factor = c->op == HVD_AVERAGE ? c->postscale / size : c->postscale;
    double result = 0;

    for (int r = 0; r < size; r++) {
        double value = value_of(c->seed, r, index, c->dtype, c->op);

        value = scaled(c->dtype, c->prescale, value);
        result = r == 0 ? value : combine(c->op, result, value);
    }
    result = value_wrap(c->dtype, result);
    return value_wrap(c->dtype, scaled(c->dtype, factor, result));
}

bool case_is_close(const struct test_case *c, int size, double expected, double got)
{
    bool exact = !value_is_float(c->dtype) ||
                 (c->op != HVD_AVERAGE && c->prescale == 1.0 && c->postscale == 1.0);
    double tolerance = exact ? 0 : 4 * value_epsilon(c->dtype) * (fabs(expected) + size);

    return expected == got || fabs(expected - got) <= tolerance;
}
