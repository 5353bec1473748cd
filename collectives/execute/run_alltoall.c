/* SPDX-License-Identifier: Apache-2.0 */
/* Plans an alltoall: two schedules, for first the ranks tell each other how many rows
 * come. */
#include "collectives/execute/run_alltoall.h"

#include <stdlib.h>

/* Fills [size + 1] offsets from row counts. */
static void fill_offsets(const int64_t *rows, int size, int64_t row_bytes,
                         int64_t *offsets)
{
    offsets[0] = 0;
    for (int i = 0; i < size; i++) {
        offsets[i + 1] = offsets[i] + rows[i] * row_bytes;
    }
}

int hvd_run_alltoall_counts(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query;
    struct hvd_entry *entry = run->entries[0];
    size_t size = (size_t)run->team->layout->size;
    const int64_t count_bytes = sizeof(int64_t);

    run->blocks = calloc(size + 1, sizeof(run->blocks[0]));
    run->send = calloc(size + 1, sizeof(run->send[0]));
    run->rows_out = calloc(size, sizeof(run->rows_out[0]));
    run->rows_in = calloc(size, sizeof(run->rows_in[0]));
    entry->received = calloc(size, sizeof(entry->received[0]));
    if (run->blocks == NULL || run->send == NULL || run->rows_out == NULL ||
        run->rows_in == NULL || entry->received == NULL ||
        hvd_segments_init_one(&run->input, run->rows_out, (int64_t)size * count_bytes) !=
            0 ||
        hvd_segments_init_one(&run->output, run->rows_in, (int64_t)size * count_bytes) !=
            0) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < size; i++) {
        run->rows_out[i] = entry->splits[i];
        run->blocks[i + 1] = run->send[i + 1] = (int64_t)(i + 1) * count_bytes;
    }
    run->is_counting = true;
    query = hvd_run_query(run, HVD_COLL_ALLTOALL);
    query.max_block = count_bytes;
    return hvd_schedule_create(&query, &run->schedule, err);
}

int hvd_run_alltoall_data(struct hvd_run *run)
{
    struct hvd_schedule_query query;
    struct hvd_entry *entry = run->entries[0];
    int size = run->team->layout->size;
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    int64_t rows = 0;

    run->is_counting = false;
    for (int i = 0; i < size; i++) {
        entry->received[i] = (int32_t)run->rows_in[i];
        rows += run->rows_in[i];
    }
    fill_offsets(run->rows_out, size, row_bytes, run->send);
    fill_offsets(run->rows_in, size, row_bytes, run->blocks);
    hvd_segments_finish(&run->input);
    hvd_segments_finish(&run->output);
    if (hvd_run_allocate(entry, rows) != 0 ||
        hvd_segments_init_one(&run->input, (void *)entry->input, run->send[size]) != 0 ||
        hvd_segments_init_one(&run->output, entry->result, run->blocks[size]) != 0) {
        return HVD_ERR_NOMEM;
    }
    query = hvd_run_query(run, HVD_COLL_ALLTOALL);
    query.max_block = run->max_block * row_bytes;
    return hvd_schedule_create(&query, &run->schedule, NULL);
}
