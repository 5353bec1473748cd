/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an Adasum that one rank stores and computes. */
#include "collectives/reduce/adasum_matrix.h"

#include <stdlib.h>

enum {
    ALIGNMENT = 64,
    PIECE = 16384, /* elements computed before checking how much work was done */
};

/* The minimum cost of a piece, as bytes touched. */
static const int64_t least_work = 512;

static size_t work_bytes(const struct hvd_adasum_matrix *matrix)
{
    return hvd_dtype_bytes(hvd_adasum_work_dtype(matrix->dtype));
}

static size_t row_elements(const struct hvd_adasum_matrix *matrix)
{
    return (size_t)matrix->begin[matrix->tensors];
}

int hvd_adasum_matrix_init(struct hvd_adasum_matrix *matrix)
{
    size_t bytes = (size_t)matrix->ranks * row_elements(matrix) * work_bytes(matrix);
    size_t pairs = (size_t)matrix->ranks / 2;

    matrix->rows = aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
    matrix->sums = calloc(pairs * (size_t)matrix->tensors + 1, sizeof(matrix->sums[0]));
    return matrix->rows != NULL && matrix->sums != NULL ? 0 : HVD_ERR_NOMEM;
}

void hvd_adasum_matrix_finish(struct hvd_adasum_matrix *matrix)
{
    free(matrix->begin);
    free(matrix->rows);
    free(matrix->sums);
    *matrix = (struct hvd_adasum_matrix){0};
}

/* The raw rows lie at the end of the matrix, so that a converted row never overwrites a
 * row that is not yet loaded. */
char *hvd_adasum_matrix_raw(const struct hvd_adasum_matrix *matrix)
{
    size_t wider = work_bytes(matrix) - hvd_dtype_bytes(matrix->dtype);

    return matrix->rows + (size_t)matrix->ranks * row_elements(matrix) * wider;
}

int hvd_adasum_matrix_pairs(const struct hvd_adasum_matrix *matrix)
{
    return matrix->ranks / (2 * matrix->distance);
}

void hvd_adasum_matrix_begin(struct hvd_adasum_matrix *matrix, enum hvd_adasum_task task)
{
    matrix->task = task;
    matrix->item = 0;
    matrix->done = 0;
}

static bool is_of_pairs(const struct hvd_adasum_matrix *matrix)
{
    return matrix->task == HVD_ADASUM_MEASURE || matrix->task == HVD_ADASUM_COMBINE;
}

static int item_count(const struct hvd_adasum_matrix *matrix)
{
    if (is_of_pairs(matrix)) {
        return hvd_adasum_matrix_pairs(matrix) * matrix->tensors;
    }
    return matrix->task == HVD_ADASUM_LOAD ? matrix->ranks : 1;
}

static int64_t item_elements(const struct hvd_adasum_matrix *matrix)
{
    int tensor = matrix->item % matrix->tensors;

    return is_of_pairs(matrix) ? matrix->begin[tensor + 1] - matrix->begin[tensor]
                               : matrix->begin[matrix->tensors];
}

static char *element_at(const struct hvd_adasum_matrix *matrix, int row, int64_t element)
{
    return matrix->rows +
           ((size_t)row * row_elements(matrix) + (size_t)element) * work_bytes(matrix);
}

/* Computes the next count elements of a row. */
static void compute_row(struct hvd_adasum_matrix *matrix, size_t count)
{
    size_t bytes = hvd_dtype_bytes(matrix->dtype);
    size_t at = (size_t)matrix->item * row_elements(matrix) + (size_t)matrix->done;
    char *work = element_at(matrix, matrix->item, matrix->done);

    if (matrix->task == HVD_ADASUM_LOAD) {
        hvd_adasum_load(matrix->dtype, matrix->prescale,
                        hvd_adasum_matrix_raw(matrix) + at * bytes, work, count);
    } else {
        hvd_adasum_store(matrix->dtype, matrix->postscale, work,
                         matrix->rows + at * bytes, count);
    }
}

/* Computes the next count elements of a tensor of a pair. */
static void compute_pair(struct hvd_adasum_matrix *matrix, size_t count)
{
    enum hvd_dtype dtype = hvd_adasum_work_dtype(matrix->dtype);
    struct hvd_adasum_sums *sums = &matrix->sums[matrix->item];
    int row = matrix->item / matrix->tensors * 2 * matrix->distance;
    int64_t element = matrix->begin[matrix->item % matrix->tensors] + matrix->done;
    char *left = element_at(matrix, row, element);
    char *right = element_at(matrix, row + matrix->distance, element);

    if (matrix->task == HVD_ADASUM_MEASURE) {
        struct hvd_adasum_sums more = hvd_adasum_measure(dtype, left, right, count);

        *sums = matrix->done == 0 ? (struct hvd_adasum_sums){0} : *sums;
        sums->dot += more.dot;
        sums->left += more.left;
        sums->right += more.right;
    } else {
        hvd_adasum_combine(dtype, sums, left, right, count);
    }
}

int hvd_adasum_matrix_compute(struct hvd_adasum_matrix *matrix, int64_t *work)
{
    int64_t bytes = (is_of_pairs(matrix) ? 2 : 1) * (int64_t)work_bytes(matrix);

    while (matrix->item < item_count(matrix)) {
        int64_t left = item_elements(matrix) - matrix->done;
        int64_t count = left < PIECE ? left : PIECE;

        if (*work <= 0) {
            return HVD_INPROGRESS;
        }
        if (is_of_pairs(matrix)) {
            compute_pair(matrix, (size_t)count);
        } else {
            compute_row(matrix, (size_t)count);
        }
        *work -= least_work + count * bytes;
        matrix->done = count < left ? matrix->done + count : 0;
        matrix->item += count < left ? 0 : 1;
    }
    return 0;
}
