/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of Adasum: adds two vectors where they point in different directions and
 * averages them where they point in the same direction. Pure; any thread.
 *
 *   a * (1 - a.b / 2|a|^2) + b * (1 - a.b / 2|b|^2)     a factor is 1 where its norm is 0
 *
 * Vectors are combined in float, those of float64 in double. If any element is NaN or
 * infinite, or a square overflows double, the whole result is NaN. */
#ifndef HVD_ADASUM_H
#define HVD_ADASUM_H

#include <stddef.h>

#include "collectives/hvd.h"

/* The sums that determine how two vectors are combined. The sums of the parts of a vector
 * add up, member by member; an array of this struct is an array of doubles. */
struct hvd_adasum_sums {
    double dot;
    double left; /* square of the norm */
    double right;
};

/* Checks that `ranks` ranks can combine tensors of dtype. Returns 0, HVD_ERR_ARG (for the
 * dtype) or HVD_ERR_UNSUPPORTED (for the number of ranks); name appears in the error. */
int hvd_adasum_check(const char *name, enum hvd_dtype dtype, int ranks,
                     struct hvd_error *err);

/* Returns the dtype in which vectors of dtype are combined, called `work` below: float32
 * or float64. */
enum hvd_dtype hvd_adasum_work_dtype(enum hvd_dtype dtype);

/* work[i] = factor * raw[i], where raw is of dtype. They may overlap if raw does not end
 * before work does. */
void hvd_adasum_load(enum hvd_dtype dtype, double factor, const void *raw, void *work,
                     size_t count);

/* out[i] = factor * work[i], where out is of dtype; rounds once. out may be work. */
void hvd_adasum_store(enum hvd_dtype dtype, double factor, const void *work, void *out,
                      size_t count);

/* Returns the sums of two vectors or of parts of them. Equal elements give equal bits,
 * whatever their alignment. */
struct hvd_adasum_sums hvd_adasum_measure(enum hvd_dtype work_dtype, const void *left,
                                          const void *right, size_t count);

/* Combines right, or a part of it, into left, using the sums of the whole vectors. */
void hvd_adasum_combine(enum hvd_dtype work_dtype, const struct hvd_adasum_sums *sums,
                        void *left, const void *right, size_t count);

#endif
