/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of the ranks and the expected results: small whole numbers, so that sums are
 * exact in every type. The values repeat every BENCH_PERIOD elements. Every 64 elements
 * one value is skipped, so that the whole pattern repeats after BENCH_TILE elements.
 * Pure. */
#ifndef HVD_BENCH_VALUES_H
#define HVD_BENCH_VALUES_H

#include <stdint.h>

#include "collectives/hvd.h"

enum {
    BENCH_PERIOD = 5,
    BENCH_TILE = 5 * 64
};

/* Returns the phase of an element of the buffer: its position in the period. */
static inline int bench_phase(int64_t place)
{
    return (int)((place + place / 64) % BENCH_PERIOD);
}

/* Returns the input of `rank` of `size` ranks for an operation at a phase. */
double bench_value(enum hvd_op op, int rank, int size, int phase);

/* Returns the result of the operation over the inputs of all ranks at a phase, in this
 * type. */
double bench_value_reduced(enum hvd_op op, enum hvd_dtype dtype, int size, int phase);

/* Stores a number in this type, or loads it; whole numbers wrap. */
void bench_value_store(enum hvd_dtype dtype, double value, void *element);
double bench_value_load(enum hvd_dtype dtype, const void *element);

#endif
