/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a collective with random data, and what every rank should get from it. */
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

/* Room for count elements, filled with what no result is; the caller frees it. */
void *case_array(enum hvd_dtype dtype, int64_t count);

/* The first count elements of rank's input; the caller frees it. */
void *case_input(const struct test_case *c, int rank, int64_t count);

/* The plain reference: one element of the reduction over size ranks. */
double case_reduced(const struct test_case *c, int size, int64_t index);

/* Equal, or where a float was scaled over size ranks as near as its rounding allows. */
bool case_is_close(const struct test_case *c, int size, double expected, double got);

#endif
