/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank holds and computes in an Adasum: its slices of all tensors from all ranks, a row
 * for each rank. Pure; one thread at a time.
 *
 * Pairs of rows become one row until one is left: rows 0 and 1, 2 and 3, ...; then 0 and 2, 4
 * and 6, ...; the distance between the rows of a pair doubles each time. */
#ifndef HVD_ADASUM_MATRIX_H
#define HVD_ADASUM_MATRIX_H

#include <stdbool.h>

#include "collectives/reduce/adasum.h"

enum hvd_adasum_task {
    HVD_ADASUM_LOAD, /* rows as they came become float or double, scaled */
    HVD_ADASUM_MEASURE, /* the sums of the slices of each pair */
    HVD_ADASUM_COMBINE, /* each pair by its sums, which are now those of the whole tensors */
    HVD_ADASUM_STORE, /* row 0 becomes what the tensors are, scaled */
};

struct hvd_adasum_matrix {
    /* Set by the caller. */
    enum hvd_dtype dtype;
    double prescale;
    double postscale;
    int ranks; /* a power of two */
    int tensors;
    int64_t *
        begin; /* [tensors + 1] of the slices in a row, in elements; the matrix frees it */
    int distance; /* between the rows of a pair */
    /* Set by init. */
    char *rows; /* one behind the other */
    struct hvd_adasum_sums
        *sums; /* [pairs * tensors]; all tensors of the first pair first */
    enum hvd_adasum_task task;
    int item; /* of the task: a row, or a tensor of a pair */
    int64_t done; /* elements of the item */
};

/* Allocates as many elements of float or, for float64, of double as there are. Returns 0 or
 * HVD_ERR_NOMEM; ends with finish in any case. */
int hvd_adasum_matrix_init(struct hvd_adasum_matrix *matrix);
void hvd_adasum_matrix_finish(struct hvd_adasum_matrix *matrix); /* zeroed is fine */

/* Where LOAD takes the rows from: elements of dtype, one row behind the other. */
char *hvd_adasum_matrix_raw(const struct hvd_adasum_matrix *matrix);

/* Rows of this distance. */
int hvd_adasum_matrix_pairs(const struct hvd_adasum_matrix *matrix);

/* Sets the task; compute does it, until it has touched about *work bytes, which it lowers by
 * what it did. Returns 0 when the task is done, else HVD_INPROGRESS. The results do not depend
 * on *work. */
void hvd_adasum_matrix_begin(struct hvd_adasum_matrix *matrix, enum hvd_adasum_task task);
int hvd_adasum_matrix_compute(struct hvd_adasum_matrix *matrix, int64_t *work);

#endif
