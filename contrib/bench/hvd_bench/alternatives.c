/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the algorithms that a table can name, chooses between them, and makes the rows of
 * a table. */
#include "contrib/bench/hvd_bench/alternatives.h"

#include <math.h>
#include <stdio.h>

#include "collectives/transport/shm/locations.h"

enum {
    LEAST_CHUNK = 64 << 10, /* smaller chunks are not tried */
    LEAST_WINDOW = 64000,
};

static const size_t chunks[] = {64 << 10, 128 << 10, 256 << 10};
static const size_t windows[] = {128 << 10, 512 << 10, 1 << 20};

static struct hvd_algorithm_row *add_item(struct bench_alternatives *list,
                                          enum hvd_algorithm algorithm)
{
    struct bench_alternative *item = &list->items[list->count++];

    item->row = (struct hvd_algorithm_row){.algorithm = algorithm};
    return &item->row;
}

static void add_chunks(struct bench_alternatives *list, enum hvd_algorithm algorithm)
{
    add_item(list, algorithm);
    for (int i = 0; i < 3; i++) {
        add_item(list, algorithm)->chunk_bytes = chunks[i];
    }
}

/* Lists the alternatives of a collective that only moves data. */
static void list_moves(enum hvd_algorithm between, enum hvd_algorithm on_node,
                       struct hvd_job_shape shape, struct bench_alternatives *list)
{
    if (shape.nodes > 1) {
        add_chunks(list, between);
        return;
    }
    add_chunks(list, on_node);
    add_item(list, HVD_ALGORITHM_CMA_READ);
    add_item(list, HVD_ALGORITHM_CMA_WRITE);
}

static void list_sums(struct hvd_job_shape shape, struct bench_alternatives *list)
{
    if (shape.nodes == 1) {
        add_item(list, HVD_ALGORITHM_LL);
        add_chunks(list, HVD_ALGORITHM_ONE_SHOT);
        add_chunks(list, HVD_ALGORITHM_TWO_SHOT);
        add_item(list, HVD_ALGORITHM_CMA_REDUCE);
        return;
    }
    if (shape.nodes == 2 && shape.ranks == 1) {
        add_item(list, HVD_ALGORITHM_PAIR);
        for (int i = 0; i < 3; i++) {
            add_item(list, HVD_ALGORITHM_PAIR)->window_bytes = windows[i];
        }
    }
    add_item(list, HVD_ALGORITHM_LINEAR)->has_one_slice = true;
    add_chunks(list, HVD_ALGORITHM_LINEAR);
    if (hvd_algorithm_message_chunk(shape) > 0) {
        add_item(list, HVD_ALGORITHM_LINEAR)->chunk_bytes =
            hvd_algorithm_message_chunk(shape);
    }
    if (shape.nodes > 2) {
        add_item(list, HVD_ALGORITHM_DIRECT)->has_one_slice = true;
        add_chunks(list, HVD_ALGORITHM_DIRECT);
    }
}

/* Writes the alternative's name as it stands in a table after the size. */
static void name(struct bench_alternative *item)
{
    const struct hvd_algorithm_row *row = &item->row;
    /* At most one of the two sizes is set. */
    size_t bytes = row->chunk_bytes + row->window_bytes;
    char size[32] = "";

    if (bytes > 0) {
        hvd_algorithm_size_write((int64_t)bytes, size, sizeof(size));
    }
    snprintf(item->name, sizeof(item->name), "%s%s%s%.12s",
             hvd_algorithm_name(row->algorithm), row->has_one_slice ? " lanes=one" : "",
             row->chunk_bytes > 0    ? " chunk="
             : row->window_bytes > 0 ? " window="
                                     : "",
             size);
}

void bench_alternatives_list(enum hvd_collective collective, struct hvd_job_shape shape,
                             struct bench_alternatives *out)
{
    *out = (struct bench_alternatives){0};
    switch (collective) {
    case HVD_COLL_BROADCAST:
        list_moves(HVD_ALGORITHM_TREE, HVD_ALGORITHM_ROLLING, shape, out);
        break;
    case HVD_COLL_ALLGATHER:
        list_moves(HVD_ALGORITHM_RING, HVD_ALGORITHM_CICO, shape, out);
        break;
    case HVD_COLL_ALLTOALL:
        list_moves(HVD_ALGORITHM_PAIRWISE, HVD_ALGORITHM_CICO, shape, out);
        break;
    default:
        list_sums(shape, out);
        break;
    }
    for (int i = 0; i < out->count; i++) {
        name(&out->items[i]);
    }
}

bool bench_alternative_fits(const struct bench_alternative *alternative, int64_t bytes)
{
    const struct hvd_algorithm_row *row = &alternative->row;

    return row->algorithm == HVD_ALGORITHM_LL ? bytes <= HVD_LINE_BYTES
           : row->chunk_bytes > 0             ? bytes > LEAST_CHUNK
           : row->window_bytes > 0            ? bytes > LEAST_WINDOW
                                              : true;
}

static bool is_same(const struct hvd_algorithm_row *a, const struct hvd_algorithm_row *b)
{
    return a->algorithm == b->algorithm && a->has_one_slice == b->has_one_slice &&
           a->chunk_bytes == b->chunk_bytes && a->window_bytes == b->window_bytes;
}

int bench_alternative_usual(const struct bench_alternatives *alternatives,
                            enum hvd_collective collective, struct hvd_job_shape shape,
                            int64_t bytes)
{
    struct hvd_algorithm_choices usual;
    int i = alternatives->count - 1;

    hvd_algorithm_choices_builtin(shape, &usual);
    while (i > 0 && !is_same(&alternatives->items[i].row,
                             hvd_algorithm_for(&usual, collective, bytes))) {
        i--;
    }
    return i;
}

/* --- choice --- */

static const double least_gain = 0.05;

void bench_cell_add(struct bench_cell *cell, double seconds,
                    const struct bench_spread *quotients)
{
    double turns = cell->turns++;

    if (turns == 0) {
        *cell =
            (struct bench_cell){1, seconds, quotients->median, quotients->three_quarters};
        return;
    }
    cell->seconds = fmin(cell->seconds, seconds);
    cell->high = fmax(cell->high, quotients->three_quarters);
    cell->middle =
        exp((turns * log(cell->middle) + log(quotients->median)) / (turns + 1));
}

int bench_alternative_choose(const struct bench_sweep_size *size, int alternatives)
{
    double least = 1 - least_gain;
    int chosen = size->usual;

    for (int i = 0; i < alternatives; i++) {
        const struct bench_cell *cell = &size->cells[i];

        if (i != size->usual && cell->turns > 0 && cell->high < 1 &&
            cell->middle < least) {
            least = cell->middle;
            chosen = i;
        }
    }
    return chosen;
}

/* --- rows --- */

/* Adds a row, unless the last row has the same algorithm and options. Drops the row if
 * the list is full. */
static void add_row(struct hvd_algorithm_rows *list, const struct hvd_algorithm_row *row,
                    int64_t from)
{
    struct hvd_algorithm_row *last =
        list->count > 0 ? &list->rows[list->count - 1] : NULL;

    if (last != NULL && is_same(last, row)) {
        return;
    }
    if (last != NULL && last->from == from) {
        list->count--;
    }
    if (list->count < HVD_ALGORITHM_ROWS) {
        list->rows[list->count] = *row;
        list->rows[list->count++].from = from;
    }
}

/* Adds the rows of the built-in table that begin above `above` and at most at `up_to`. */
static void add_usual(struct hvd_algorithm_rows *list,
                      const struct hvd_algorithm_rows *usual, int64_t above,
                      int64_t up_to)
{
    for (int i = 0; i < usual->count; i++) {
        if (usual->rows[i].from > above && usual->rows[i].from <= up_to) {
            add_row(list, &usual->rows[i], usual->rows[i].from);
        }
    }
}

void bench_alternatives_rows(const struct bench_alternatives *alternatives,
                             enum hvd_collective collective, struct hvd_job_shape shape,
                             const struct bench_sweep_size *sizes, const int *chosen,
                             int count, struct hvd_algorithm_rows *list)
{
    struct hvd_algorithm_choices choices;
    const struct hvd_algorithm_rows *usual = &choices.of[collective];
    bool is_usual = true;

    hvd_algorithm_choices_builtin(shape, &choices);
    *list = (struct hvd_algorithm_rows){0};
    for (int i = 0; i < count; i++) {
        const struct hvd_algorithm_row *row = &alternatives->items[chosen[i]].row;
        bool was_usual = is_usual;

        is_usual = chosen[i] == sizes[i].usual;
        if (i == 0 || (was_usual && is_usual)) {
            add_usual(list, usual, i == 0 ? -1 : sizes[i - 1].bytes, sizes[i].bytes);
        }
        if (i == 0 && !is_usual) {
            add_row(list, row, list->rows[list->count - 1].from);
        } else if (i > 0 && chosen[i] != chosen[i - 1] && !(was_usual && is_usual)) {
            bool was_line = list->rows[list->count - 1].algorithm == HVD_ALGORITHM_LL;

            add_row(list, row, was_line ? HVD_LINE_BYTES + 1 : sizes[i].bytes);
        }
    }
    if (is_usual && count > 0) {
        add_usual(list, usual, sizes[count - 1].bytes, INT64_MAX);
    }
}
