/* SPDX-License-Identifier: Apache-2.0 */
/* Test data that every rank can compute for every other rank, and its dtypes as
 * doubles. */
#ifndef HVD_RANK_VALUES_H
#define HVD_RANK_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* A repeatable random number for a case, a rank and an index. */
uint32_t value_random(uint32_t seed, int rank, int64_t index);

/* Element `index` of rank's input: a small whole number that every dtype holds exactly,
 * so that sums and products over a few ranks are exact too. */
double value_of(uint32_t seed, int rank, int64_t index, enum hvd_dtype dtype,
                enum hvd_op op);

/* Stores a value that dtype holds exactly; reads any value. */
void value_store(enum hvd_dtype dtype, void *array, int64_t index, double value);
double value_load(enum hvd_dtype dtype, const void *array, int64_t index);

/* What a whole number becomes in dtype: integers wrap, bool becomes 0 or 1. */
double value_wrap(enum hvd_dtype dtype, double value);

/* The integer that the lowest bits are in dtype, in 64 bits of two's complement; and a
 * sum of such that is wrapped to dtype and divided, truncated toward zero. */
uint64_t value_of_bits(enum hvd_dtype dtype, uint64_t bits);
uint64_t value_quotient(enum hvd_dtype dtype, uint64_t sum, uint32_t divisor);

int value_is_float(enum hvd_dtype dtype);

/* Largest relative error of one rounding in dtype. */
double value_epsilon(enum hvd_dtype dtype);

#endif
