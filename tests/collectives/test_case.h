/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a collective with random data, and its expected result. */
#ifndef HVD_TEST_CASE_H
#define HVD_TEST_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

struct test_case {
    uint32_t seed;
    enum hvd_dtype dtype;
    enum hvd_op op;
    double prescale;
    double postscale;
    int64_t count;
    char name[48];
};

/* Returns room for `count` elements, filled with bytes that are no result; the caller
 * frees it. */
void *case_array(enum hvd_dtype dtype, int64_t count);

/* Returns the first `count` elements of a rank's input; the caller frees it. */
void *case_input(const struct test_case *c, int rank, int64_t count);

/* Computes one element of the reduction over `size` ranks, in plain arithmetic. */
double case_reduced(const struct test_case *c, int size, int64_t index);

/* Whether a result is equal to the expected one, or, for floats that are scaled over
 * `size` ranks, as near as rounding allows. */
bool case_is_close(const struct test_case *c, int size, double expected, double got);

#endif
