/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce and scale in plain arithmetic, one element at a time. */
#ifndef HVD_REDUCE_REFERENCE_H
#define HVD_REDUCE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/reduce/reduce.h"

/* An element of any dtype. */
struct element {
    double real; /* exact value of a float dtype */
    uint64_t whole; /* value of another dtype, sign-extended */
};

bool reference_is_float(enum hvd_dtype dtype);

/* Returns the dtype of the partial results of a reduction: float32 for 16-bit floats. */
enum hvd_dtype reference_partial(enum hvd_dtype dtype);

struct element reference_load(enum hvd_dtype dtype, const void *array, size_t index);

/* Stores a value, rounded to dtype. */
void reference_store(enum hvd_dtype dtype, struct element value, void *array,
                     size_t index);

struct element reference_combine(enum hvd_dtype dtype, enum hvd_op op, struct element a,
                                 struct element b);
struct element reference_scale(enum hvd_dtype dtype, double factor, struct element value);

/* Returns factor * value / divisor. The divisors 0 and 1 change nothing. */
struct element reference_average(enum hvd_dtype dtype, double factor, uint32_t divisor,
                                 struct element value);

/* Whether two elements have the same bits, or both are NaN. */
bool reference_equal(enum hvd_dtype dtype, const void *a, const void *b, size_t index);

#endif
