/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum in plain double arithmetic, and the tolerance for rounding. */
#ifndef HVD_ADASUM_REFERENCE_H
#define HVD_ADASUM_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* A vector, and for each element the magnitude by which its error is measured: the sum of
 * the magnitudes of everything added to it. */
struct adasum_vector {
    int64_t count;
    double *value;
    double *magnitude;
};

/* Makes a vector whose values and magnitudes are 0; ends the process if memory is out. */
struct adasum_vector adasum_vector_make(int64_t count);
void adasum_vector_finish(struct adasum_vector *vector);

/* Prepares a vector with these values to be combined: sets the magnitudes to those of the
 * values. */
void adasum_vector_begin(struct adasum_vector *vector);

/* Combines right into left. */
void adasum_reference_combine(struct adasum_vector *left,
                              const struct adasum_vector *right);

/* Combines the vectors of `ranks` ranks, a power of two, into the first. */
void adasum_reference_tree(struct adasum_vector *vectors, int ranks);

/* Whether `got` can be the result for `ranks` vectors of dtype: it must be as near as
 * float allows (double for float64), and be rounded to dtype once. */
bool adasum_reference_is_close(enum hvd_dtype dtype, int ranks,
                               const struct adasum_vector *expected, int64_t index,
                               double got);

#endif
