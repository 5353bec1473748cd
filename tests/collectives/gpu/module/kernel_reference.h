/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the result that a kernel must give for one element, in a slow and simple way:
 * 16-bit floats are split into integers and powers of two, and products of floats are
 * computed in double, which holds all of their digits. */
#ifndef KERNEL_REFERENCE_H
#define KERNEL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"

size_t reference_bytes(enum hvd_dtype dtype);
const char *reference_name(enum hvd_dtype dtype);

bool reference_is_float(enum hvd_dtype dtype);

/* Returns the element of type `from` times factor, as type `to`. An integer is also
 * divided by divisor if that is more than 1. */
uint64_t reference_move(enum hvd_dtype from, enum hvd_dtype to, double factor,
                        uint32_t divisor, uint64_t bits);

bool reference_are_nan(enum hvd_dtype dtype, uint64_t one, uint64_t other);

/* Returns a special value of a type, selected by number: zero, the smallest, the largest,
 * infinity, NaN, ... */
uint64_t reference_special(enum hvd_dtype dtype, unsigned number);

/* Turns random bits into an element with few bits set, often a tie in rounding. */
uint64_t reference_small(enum hvd_dtype dtype, uint64_t bits);

#endif
