/* SPDX-License-Identifier: Apache-2.0 */
/* What reduce and scale promise, one element at a time, in plain arithmetic. */
#ifndef HVD_REDUCE_REFERENCE_H
#define HVD_REDUCE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/reduce/reduce.h"

/* An element of any dtype. */
struct element {
    double real; /* of the float dtypes, exactly */
    uint64_t whole; /* of the others, sign-extended */
};

bool reference_is_float(enum hvd_dtype dtype);

/* The dtype in which partials of dtype are stored. */
enum hvd_dtype reference_partial(enum hvd_dtype dtype);

struct element reference_load(enum hvd_dtype dtype, const void *array, size_t index);

/* Rounds to dtype. */
void reference_store(enum hvd_dtype dtype, struct element value, void *array,
                     size_t index);

struct element reference_combine(enum hvd_dtype dtype, enum hvd_op op, struct element a,
                                 struct element b);
struct element reference_scale(enum hvd_dtype dtype, double factor, struct element value);

/* factor * value / divisor; 0 and 1: no divisor. */
struct element reference_average(enum hvd_dtype dtype, double factor, uint32_t divisor,
                                 struct element value);

/* Same bits, or both NaN. */
bool reference_equal(enum hvd_dtype dtype, const void *a, const void *b, size_t index);

#endif
