/* SPDX-License-Identifier: Apache-2.0 */
/* Test data that every rank can compute for every other rank, and elements of any dtype
 * as doubles. */
#ifndef HVD_RANK_VALUES_H
#define HVD_RANK_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* Returns a random number that depends only on the seed, a rank and an index. */
uint32_t value_random(uint32_t seed, int rank, int64_t index);

/* Returns element `index` of a rank's input: a small whole number that every dtype holds
 * exactly, so that sums and products over a few ranks are exact, too. */
double value_of(uint32_t seed, int rank, int64_t index, enum hvd_dtype dtype,
                enum hvd_op op);

/* Store a value that dtype holds exactly, and load any value. */
void value_store(enum hvd_dtype dtype, void *array, int64_t index, double value);
double value_load(enum hvd_dtype dtype, const void *array, int64_t index);

/* Converts a whole number to dtype: integers wrap, bool becomes 0 or 1. */
double value_wrap(enum hvd_dtype dtype, double value);

/* Return the integer whose lowest bits in dtype these are, as 64 bits of two's
 * complement, and a sum that is wrapped to dtype and then divided, truncated toward zero.
 */
uint64_t value_of_bits(enum hvd_dtype dtype, uint64_t bits);
uint64_t value_quotient(enum hvd_dtype dtype, uint64_t sum, uint32_t divisor);

int value_is_float(enum hvd_dtype dtype);

/* Returns the largest relative error of one rounding to dtype. */
double value_epsilon(enum hvd_dtype dtype);

#endif
