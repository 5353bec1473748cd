/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a batch with the op Adasum: a binary tree over the ranks, in which every rank
 * works on its slice of every tensor.
 *
 *   exchange  alltoall: each rank sends me my slices of all its tensors, which become one
 *             row of my matrix
 *   load, measure   computes the dot products of each pair of rows, over my slices
 *   add up    allreduce of these sums over the ranks
 *   combine   each pair becomes one row; then measure again, until one row is left
 *   store
 *   gather    allgather of that row
 *
 * Each tensor is sliced by itself, so the order in which a sum is added up, and with it
 * its last bit, does not depend on the other tensors of the batch. */
#include <stdlib.h>

#include "collectives/schedule/schedule_parts.h"
#include "collectives/run/run_state.h"
#include "collectives/reduce/adasum_matrix.h"

enum stage {
    EXCHANGE,
    COMPUTE, /* runs matrix.task */
    ADD_UP,
    GATHER,
};

/* run->send has the bytes of each rank's slices, in the order of set_slices; run->blocks
 * has the bytes of the rows. */
struct hvd_run_adasum {
    enum stage stage;
    struct hvd_adasum_matrix matrix;
};

static struct hvd_schedule_query make_query(const struct hvd_run *run,
                                            enum hvd_collective collective)
{
    const struct hvd_team *team = run->team;
    struct hvd_schedule_query query = {
        .collective = collective,
        .choices = &team->choices,
        .layout = team->layout,
        .rank = team->rank,
        .geometry = team->geometry,
    };

    /* Slices are many segments, so they cannot be accessed in place. */
    query.geometry.has_single_copy = false;
    return query;
}

static struct hvd_range slice_of(const struct hvd_entry *entry, int size, int rank)
{
    return hvd_part_of((struct hvd_range){0, hvd_entry_count(entry)}, size, rank);
}

/* Makes segments of all tensors' inputs or outputs: the slices of rank 0, of rank 1, and
 * so on. */
static int set_slices(const struct hvd_run *run, bool is_output,
                      struct hvd_segments *segments)
{
    int size = run->team->layout->size;
    int count = size * run->entry_count;

    hvd_segments_finish(segments);
    if (hvd_segments_init(segments, count) != 0) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < count; i++) {
        struct hvd_entry *entry = run->entries[i % run->entry_count];
        struct hvd_range slice = slice_of(entry, size, i / run->entry_count);
        int64_t element = (int64_t)hvd_dtype_bytes(entry->descriptor.dtype);
        char *data = is_output ? entry->output : (char *)entry->input;

        if (!entry->is_zeros && data != NULL) {
            segments->data[i] = data + slice.begin * element;
        }
        segments->begin[i + 1] = segments->begin[i] + slice.count * element;
    }
    return 0;
}

/* Computes where each tensor's slice begins in a row (matrix.begin), and the bytes to
 * exchange with each rank (run->send and run->blocks). */
static void measure_slices(struct hvd_run *run)
{
    struct hvd_adasum_matrix *matrix = &run->adasum->matrix;
    int64_t element = (int64_t)hvd_dtype_bytes(matrix->dtype);

    for (int rank = 0; rank < matrix->ranks; rank++) {
        int64_t count = 0;

        for (int i = 0; i < matrix->tensors; i++) {
            count += slice_of(run->entries[i], matrix->ranks, rank).count;
            if (rank == run->team->rank) {
                matrix->begin[i + 1] = count;
            }
        }
        run->send[rank + 1] = run->send[rank] + count * element;
    }
    for (int rank = 0; rank < matrix->ranks; rank++) {
        run->blocks[rank + 1] =
            run->blocks[rank] + matrix->begin[matrix->tensors] * element;
    }
}

static int make_table(struct hvd_run *run)
{
    const struct hvd_descriptor *descriptor = &run->entries[0]->descriptor;
    int ranks = run->team->layout->size;
    struct hvd_run_adasum *adasum = calloc(1, sizeof(*adasum));

    run->adasum = adasum;
    run->send = calloc((size_t)ranks + 1, sizeof(run->send[0]));
    run->blocks = calloc((size_t)ranks + 1, sizeof(run->blocks[0]));
    if (adasum == NULL || run->send == NULL || run->blocks == NULL) {
        return HVD_ERR_NOMEM;
    }
    adasum->matrix = (struct hvd_adasum_matrix){
        .dtype = descriptor->dtype,
        .prescale = descriptor->prescale,
        .postscale = descriptor->postscale,
        .ranks = ranks,
        .tensors = run->entry_count,
        .begin = calloc((size_t)run->entry_count + 1, sizeof(int64_t)),
        .distance = 1,
    };
    if (adasum->matrix.begin == NULL) {
        return HVD_ERR_NOMEM;
    }
    measure_slices(run);
    return hvd_adasum_matrix_init(&adasum->matrix);
}

int hvd_run_adasum_prepare(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query = make_query(run, HVD_COLL_ALLTOALL);
    int status = make_table(run);

    if (status != 0) {
        return status;
    }
    /* The schedules reduce only the sums of pairs, as doubles. */
    run->prescale = 1.0;
    run->reduction = hvd_reduction_of(HVD_FLOAT64, HVD_SUM);
    run->adasum->stage = EXCHANGE;
    if (set_slices(run, false, &run->input) != 0 ||
        hvd_segments_init_one(&run->output, hvd_adasum_matrix_raw(&run->adasum->matrix),
                              run->blocks[query.layout->size]) != 0) {
        return HVD_ERR_NOMEM;
    }
    query.blocks = run->blocks;
    query.send = run->send;
    for (int rank = 0; rank < query.layout->size; rank++) {
        int64_t block = run->send[rank + 1] - run->send[rank];

        query.max_block = block > query.max_block ? block : query.max_block;
    }
    return hvd_run_schedule(run, &query, err);
}

static int prepare_adding(struct hvd_run *run)
{
    struct hvd_adasum_matrix *matrix = &run->adasum->matrix;
    struct hvd_schedule_query query = make_query(run, HVD_COLL_ALLREDUCE);
    int64_t sums = (int64_t)hvd_adasum_matrix_pairs(matrix) * matrix->tensors;
    int64_t bytes = sums * (int64_t)sizeof(matrix->sums[0]);

    run->adasum->stage = ADD_UP;
    hvd_segments_finish(&run->input);
    hvd_segments_finish(&run->output);
    if (hvd_segments_init_one(&run->input, matrix->sums, bytes) != 0 ||
        hvd_segments_init_one(&run->output, matrix->sums, bytes) != 0) {
        return HVD_ERR_NOMEM;
    }
    query.element_bytes = sizeof(double);
    query.partial_bytes = sizeof(double);
    query.count = bytes / (int64_t)sizeof(double);
    return hvd_run_schedule(run, &query, NULL);
}

static int prepare_gather(struct hvd_run *run)
{
    struct hvd_schedule_query query = make_query(run, HVD_COLL_ALLGATHER);

    run->adasum->stage = GATHER;
    hvd_segments_finish(&run->input);
    if (hvd_segments_init_one(&run->input, run->adasum->matrix.rows, run->blocks[1]) !=
            0 ||
        set_slices(run, true, &run->output) != 0) {
        return HVD_ERR_NOMEM;
    }
    query.blocks = run->send;
    return hvd_run_schedule(run, &query, NULL);
}

static int begin_task(struct hvd_run *run, enum hvd_adasum_task task)
{
    run->adasum->stage = COMPUTE;
    run->is_computing = true;
    hvd_adasum_matrix_begin(&run->adasum->matrix, task);
    return 0;
}

static int begin_round(struct hvd_run *run)
{
    const struct hvd_adasum_matrix *matrix = &run->adasum->matrix;
    bool is_over = matrix->distance == matrix->ranks;

    return begin_task(run, is_over ? HVD_ADASUM_STORE : HVD_ADASUM_MEASURE);
}

static int follow_task(struct hvd_run *run)
{
    switch (run->adasum->matrix.task) {
    case HVD_ADASUM_LOAD:
        return begin_round(run);
    case HVD_ADASUM_MEASURE:
        return prepare_adding(run);
    case HVD_ADASUM_COMBINE:
        run->adasum->matrix.distance *= 2;
        return begin_round(run);
    case HVD_ADASUM_STORE:
        return prepare_gather(run);
    }
    return HVD_ERR_ARG;
}

int hvd_run_adasum_next(struct hvd_run *run)
{
    switch (run->adasum->stage) {
    case EXCHANGE:
        return begin_task(run, HVD_ADASUM_LOAD);
    case COMPUTE:
        return follow_task(run);
    case ADD_UP:
        return begin_task(run, HVD_ADASUM_COMBINE);
    case GATHER:
        return 0;
    }
    return HVD_ERR_ARG;
}

int hvd_run_adasum_compute(struct hvd_run *run, int64_t *work, bool *moved)
{
    int64_t before = *work;
    int status = hvd_adasum_matrix_compute(&run->adasum->matrix, work);

    *moved = *moved || *work < before;
    run->is_computing = status != 0;
    return status;
}

void hvd_run_adasum_destroy(struct hvd_run_adasum *adasum)
{
    if (adasum != NULL) {
        hvd_adasum_matrix_finish(&adasum->matrix);
        free(adasum);
    }
}
