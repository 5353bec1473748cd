/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels are to make of one element, slow and plain: 16-bit floats are taken
 * apart into whole numbers and powers of two, and a product of floats is made in double,
 * which has all its digits. */
#ifndef KERNEL_REFERENCE_H
#define KERNEL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/hvd.h"

size_t reference_bytes(enum hvd_dtype dtype);
const char *reference_name(enum hvd_dtype dtype);

bool reference_is_float(enum hvd_dtype dtype);

/* The element times factor, in another type; an integer by divisor, where that is more
 * than 1. */
uint64_t reference_move(enum hvd_dtype from, enum hvd_dtype to, double factor,
                        uint32_t divisor, uint64_t bits);

bool reference_are_nan(enum hvd_dtype dtype, uint64_t one, uint64_t other);

/* Bits that are special in a type: zero, the least, the largest, infinite, NaN, ... by
 * number. */
uint64_t reference_special(enum hvd_dtype dtype, unsigned number);

/* Random bits made an element of which few bits are set, often a tie when it is
 * rounded. */
uint64_t reference_small(enum hvd_dtype dtype, uint64_t bits);

#endif
