/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank holds and computes in an Adasum. */
#include "collectives/reduce/adasum_table.h"

#include <stdlib.h>

enum {
    ALIGNMENT = 64,
    PIECE = 16384, /* elements that are computed without a look at how much that was */
};

/* What a piece costs, however small, as bytes touched. */
static const int64_t least_work = 512;

static size_t work_bytes(const struct hvd_adasum_table *table)
{
    return hvd_dtype_bytes(hvd_adasum_work_dtype(table->dtype));
}

static size_t row_elements(const struct hvd_adasum_table *table)
{
    return (size_t)table->begin[table->tensors];
}

int hvd_adasum_table_init(struct hvd_adasum_table *table)
{
    size_t bytes = (size_t)table->ranks * row_elements(table) * work_bytes(table);
    size_t pairs = (size_t)table->ranks / 2;

    table->rows = aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
    table->sums = calloc(pairs * (size_t)table->tensors + 1, sizeof(table->sums[0]));
    return table->rows != NULL && table->sums != NULL ? 0 : HVD_ERR_NOMEM;
}

void hvd_adasum_table_finish(struct hvd_adasum_table *table)
{
    free(table->begin);
    free(table->rows);
    free(table->sums);
    *table = (struct hvd_adasum_table){0};
}

/* At the end of the table, so that what a row becomes never lies over one that is still to be
 * loaded. */
char *hvd_adasum_table_raw(const struct hvd_adasum_table *table)
{
    size_t wider = work_bytes(table) - hvd_dtype_bytes(table->dtype);

    return table->rows + (size_t)table->ranks * row_elements(table) * wider;
}

int hvd_adasum_table_pairs(const struct hvd_adasum_table *table)
{
    return table->ranks / (2 * table->distance);
}

void hvd_adasum_table_begin(struct hvd_adasum_table *table, enum hvd_adasum_task task)
{
    table->task = task;
    table->item = 0;
    table->done = 0;
}

static bool is_of_pairs(const struct hvd_adasum_table *table)
{
    return table->task == HVD_ADASUM_MEASURE || table->task == HVD_ADASUM_COMBINE;
}

static int item_count(const struct hvd_adasum_table *table)
{
    if (is_of_pairs(table)) {
        return hvd_adasum_table_pairs(table) * table->tensors;
    }
    return table->task == HVD_ADASUM_LOAD ? table->ranks : 1;
}

static int64_t item_elements(const struct hvd_adasum_table *table)
{
    int tensor = table->item % table->tensors;

    return is_of_pairs(table) ? table->begin[tensor + 1] - table->begin[tensor]
                              : table->begin[table->tensors];
}

static char *place(const struct hvd_adasum_table *table, int row, int64_t element)
{
    return table->rows +
           ((size_t)row * row_elements(table) + (size_t)element) * work_bytes(table);
}

/* The next count elements of a row. */
static void compute_row(struct hvd_adasum_table *table, size_t count)
{
    size_t bytes = hvd_dtype_bytes(table->dtype);
    size_t at = (size_t)table->item * row_elements(table) + (size_t)table->done;
    char *work = place(table, table->item, table->done);

    if (table->task == HVD_ADASUM_LOAD) {
        hvd_adasum_load(table->dtype, table->prescale,
                        hvd_adasum_table_raw(table) + at * bytes, work, count);
    } else {
        hvd_adasum_store(table->dtype, table->postscale, work, table->rows + at * bytes,
                         count);
    }
}

/* The next count elements of a tensor of a pair. */
static void compute_pair(struct hvd_adasum_table *table, size_t count)
{
    enum hvd_dtype dtype = hvd_adasum_work_dtype(table->dtype);
    struct hvd_adasum_sums *sums = &table->sums[table->item];
    int row = table->item / table->tensors * 2 * table->distance;
    int64_t element = table->begin[table->item % table->tensors] + table->done;
    char *left = place(table, row, element);
    char *right = place(table, row + table->distance, element);

    if (table->task == HVD_ADASUM_MEASURE) {
        struct hvd_adasum_sums more = hvd_adasum_measure(dtype, left, right, count);

        *sums = table->done == 0 ? (struct hvd_adasum_sums){0} : *sums;
        sums->dot += more.dot;
        sums->left += more.left;
        sums->right += more.right;
    } else {
        hvd_adasum_combine(dtype, sums, left, right, count);
    }
}

int hvd_adasum_table_compute(struct hvd_adasum_table *table, int64_t *work)
{
    int64_t bytes = (is_of_pairs(table) ? 2 : 1) * (int64_t)work_bytes(table);

    while (table->item < item_count(table)) {
        int64_t left = item_elements(table) - table->done;
        int64_t count = left < PIECE ? left : PIECE;

        if (*work <= 0) {
            return HVD_INPROGRESS;
        }
        if (is_of_pairs(table)) {
            compute_pair(table, (size_t)count);
        } else {
            compute_row(table, (size_t)count);
        }
        *work -= least_work + count * bytes;
        table->done = count < left ? table->done + count : 0;
        table->item += count < left ? 0 : 1;
    }
    return 0;
}
