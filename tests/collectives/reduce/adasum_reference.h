/* SPDX-License-Identifier: Apache-2.0 */
/* What Adasum promises, in plain double arithmetic, and how far rounding may lead away
 * from it. */
#ifndef HVD_ADASUM_REFERENCE_H
#define HVD_ADASUM_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* A vector and, element by element, what its errors are measured by: the sum of the
 * magnitudes of all that was added up to it. */
struct adasum_vector {
    int64_t count;
    double *value;
    double *magnitude;
};

/* Room for a vector, values and magnitudes 0; ends the process without memory. */
struct adasum_vector adasum_vector_make(int64_t count);
void adasum_vector_finish(struct adasum_vector *vector);

/* Makes an input of what value holds: the magnitudes are those of the values. */
void adasum_vector_begin(struct adasum_vector *vector);

/* Combines right into left. */
void adasum_reference_combine(struct adasum_vector *left,
                              const struct adasum_vector *right);

/* Combines the vectors of `ranks` ranks, a power of two, into the first. */
void adasum_reference_tree(struct adasum_vector *vectors, int ranks);

/* Whether got may come of `ranks` vectors of dtype: as near as float (float64: double)
 * comes, and then rounded to dtype once. */
bool adasum_reference_is_close(enum hvd_dtype dtype, int ranks,
                               const struct adasum_vector *expected, int64_t index,
                               double got);

#endif
