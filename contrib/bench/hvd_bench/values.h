/* SPDX-License-Identifier: Apache-2.0 */
/* The values that ranks put in and what comes out: small whole numbers, so that sums are
 * exact in every type. They repeat with a period of BENCH_PERIOD places, which shifts
 * every 64 places, so that all repeats every BENCH_TILE places. Pure. */
#ifndef HVD_BENCH_VALUES_H
#define HVD_BENCH_VALUES_H

#include <stdint.h>

#include "collectives/hvd.h"

enum {
    BENCH_PERIOD = 5,
    BENCH_TILE = 5 * 64
};

/* Where in the period a place of the buffer is. */
static inline int bench_phase(int64_t place)
{
    return (int)((place + place / 64) % BENCH_PERIOD);
}

/* The input of `rank` of `size` for an operation at a phase. */
double bench_value(enum hvd_op op, int rank, int size, int phase);

/* The result of the operation over the values of all ranks at a phase, in this type. */
double bench_value_reduced(enum hvd_op op, enum hvd_dtype dtype, int size, int phase);

/* A number as this type holds it, into / from memory; whole numbers wrap. */
void bench_value_store(enum hvd_dtype dtype, double value, void *element);
double bench_value_load(enum hvd_dtype dtype, const void *element);

#endif
