/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an Adasum that one rank stores and computes: its slices of all tensors from
 * all ranks, one row per rank. Pure; one thread at a time.
 *
 * Pairs of rows are combined into one until a single row is left: rows 0 and 1, 2 and 3,
 * ...; then 0 and 2, 4 and 6, ...; the distance between the rows of a pair doubles each
 * time. */
#ifndef HVD_ADASUM_MATRIX_H
#define HVD_ADASUM_MATRIX_H

#include <stdbool.h>

#include "collectives/reduce/adasum.h"

enum hvd_adasum_task {
    HVD_ADASUM_LOAD, /* converts the received rows to float or double and scales them */
    HVD_ADASUM_MEASURE, /* computes the sums of the slices of each pair */
    /* combines each pair, using the sums of the whole tensors, which the caller has
     * stored in `sums` */
    HVD_ADASUM_COMBINE,
    HVD_ADASUM_STORE, /* converts row 0 to the result and scales it */
};

struct hvd_adasum_matrix {
    /* Set by the caller. */
    enum hvd_dtype dtype;
    double prescale;
    double postscale;
    int ranks; /* a power of two */
    int tensors;
    /* [tensors + 1]: the element of a row with which the slice of each tensor begins;
     * freed by the matrix */
    int64_t *begin;
    int distance; /* the rows of a pair are r and r + distance */
    /* Set by init. */
    char *rows; /* consecutive rows */
    /* [pairs * tensors]: the sums of all tensors of the first pair, then of the second,
     * ... */
    struct hvd_adasum_sums *sums;
    enum hvd_adasum_task task;
    int item; /* the row, or the tensor of a pair, that the task works on */
    int64_t done; /* elements of the item that are done */
};

/* Allocates an element of float (double for float64) for each element of the rows.
 * Returns 0 or HVD_ERR_NOMEM; call finish in either case. */
int hvd_adasum_matrix_init(struct hvd_adasum_matrix *matrix);
void hvd_adasum_matrix_finish(struct hvd_adasum_matrix *matrix); /* zeroed is fine */

/* Returns where LOAD reads the rows: consecutive rows with elements of dtype. */
char *hvd_adasum_matrix_raw(const struct hvd_adasum_matrix *matrix);

/* Returns the number of pairs at this distance. */
int hvd_adasum_matrix_pairs(const struct hvd_adasum_matrix *matrix);

/* Begin a task, and work on it. compute returns after it has touched about *work bytes,
 * and lowers *work by its work: 0 when the task is done, else HVD_INPROGRESS. The results
 * do not depend on *work. */
void hvd_adasum_matrix_begin(struct hvd_adasum_matrix *matrix, enum hvd_adasum_task task);
int hvd_adasum_matrix_compute(struct hvd_adasum_matrix *matrix, int64_t *work);

#endif
