/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report over time. */
#include "collectives/trace/straggler_history.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_COLUMNS = 16,
    PERIODS = 8, /* the parts of the job that the individual score compares */
};

int hvd_straggler_history_create(int size, struct hvd_straggler_history **out,
                                 struct hvd_error *err)
{
    struct hvd_straggler_history *history = calloc(1, sizeof(*history));

    if (history == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the page of the report");
    }
    history->size = size;
    history->width = 1;
    history->room = HVD_HISTORY_COLUMNS;
    while (history->room > LEAST_COLUMNS &&
           (int64_t)history->room * size > HVD_HISTORY_CELLS) {
        history->room /= 2;
    }
    history->columns = calloc((size_t)history->room, sizeof(history->columns[0]));
    history->cells =
        calloc((size_t)history->room * (size_t)size, sizeof(history->cells[0]));
    if (history->columns == NULL || history->cells == NULL) {
        hvd_straggler_history_destroy(history);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the page of the report");
    }
    *out = history;
    return 0;
}

void hvd_straggler_history_destroy(struct hvd_straggler_history *history)
{
    if (history != NULL) {
        free(history->columns);
        free(history->cells);
        free(history);
    }
}

static struct hvd_straggler_cell *cell_at(const struct hvd_straggler_history *history,
                                          int rank, int column)
{
    return &history->cells[(size_t)rank * (size_t)history->room + (size_t)column];
}

static void add_to(uint32_t *sum, int64_t more)
{
    int64_t total = *sum + (more > 0 ? more : 0);

    *sum = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
}

/* Moves a column to an earlier one, and empties it. */
static void merge_column(struct hvd_straggler_history *history, int into, int from)
{
    struct hvd_straggler_column *left = &history->columns[into];
    struct hvd_straggler_column *right = &history->columns[from];

    left->moving_us += right->moving_us;
    left->ended_us = right->ended_us > left->ended_us ? right->ended_us : left->ended_us;
    *right = (struct hvd_straggler_column){0};
    for (int rank = 0; rank < history->size; rank++) {
        add_to(&cell_at(history, rank, into)->late_us,
               cell_at(history, rank, from)->late_us);
        add_to(&cell_at(history, rank, into)->waited_us,
               cell_at(history, rank, from)->waited_us);
        *cell_at(history, rank, from) = (struct hvd_straggler_cell){0};
    }
}

/* Merges each pair of columns into one. */
static void halve(struct hvd_straggler_history *history)
{
    for (int i = 0; i < history->room / 2; i++) {
        if (i > 0) {
            merge_column(history, i, 2 * i);
        }
        merge_column(history, i, 2 * i + 1);
    }
    history->width *= 2;
    history->count = (history->count + 1) / 2;
}

void hvd_straggler_history_count_steps(struct hvd_straggler_history *history)
{
    for (int i = 1; i < history->count; i++) {
        merge_column(history, 0, i);
    }
    history->count = history->count > 0 ? 1 : 0;
    history->width = 1;
    history->has_steps = true;
}

/* Returns the column of a step; makes room for it. */
static int find_column(struct hvd_straggler_history *history, int64_t step)
{
    int column;

    step = step > 0 ? step : 0;
    while (step / history->width >= history->room) {
        halve(history);
    }
    column = (int)(step / history->width);
    history->count = column >= history->count ? column + 1 : history->count;
    return column;
}

void hvd_straggler_history_add_batch(struct hvd_straggler_history *history, int64_t step,
                                     int64_t moving_us, int64_t ended_us)
{
    struct hvd_straggler_column *column = &history->columns[find_column(history, step)];

    column->moving_us += moving_us;
    column->ended_us = ended_us > column->ended_us ? ended_us : column->ended_us;
}

void hvd_straggler_history_add_late(struct hvd_straggler_history *history, int64_t step,
                                    int rank, int64_t late_us)
{
    int column = find_column(history, step);

    add_to(&cell_at(history, rank, column)->late_us, late_us);
}

void hvd_straggler_history_add_wait(struct hvd_straggler_history *history, int64_t step,
                                    int rank, int64_t waited_us)
{
    int column = find_column(history, step);

    add_to(&cell_at(history, rank, column)->waited_us, waited_us);
}

int64_t hvd_straggler_history_span_us(const struct hvd_straggler_history *history,
                                      int column)
{
    int64_t began_us = 0;

    for (int i = column - 1; i >= 0 && began_us == 0; i--) {
        began_us = history->columns[i].ended_us;
    }
    return history->columns[column].ended_us > began_us
               ? history->columns[column].ended_us - began_us
               : 0;
}

int64_t hvd_straggler_history_computing_us(const struct hvd_straggler_history *history,
                                           int column, int rank)
{
    int64_t computing_us = hvd_straggler_history_span_us(history, column) -
                           history->columns[column].moving_us -
                           cell_at(history, rank, column)->waited_us;

    return computing_us > 0 ? computing_us : 0;
}

/* --- scores --- */

static int compare_times(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

/* Returns the median computing time of a rank in columns begin to end - 1. times has room
 * for them. */
static int64_t median_of(const struct hvd_straggler_history *history, int rank, int begin,
                         int end, int64_t *times)
{
    for (int i = begin; i < end; i++) {
        times[i - begin] = hvd_straggler_history_computing_us(history, i, rank);
    }
    if (end <= begin) {
        return 0;
    }
    qsort(times, (size_t)(end - begin), sizeof(times[0]), compare_times);
    return times[(end - begin) / 2];
}

/* Times below least_us count as that: they are too short to matter, and to compare. */
static double ratio_of(int64_t reference_us, int64_t own_us, int64_t least_us)
{
    double reference = (double)(reference_us > least_us ? reference_us : least_us);
    double own = (double)(own_us > least_us ? own_us : least_us);

    return reference < own ? reference / own : 1;
}

/* Returns a hundredth of the median duration of the columns, at least 1. */
static int64_t least_time(const struct hvd_straggler_history *history, int64_t *times)
{
    int64_t least_us = 0;

    for (int i = 0; i < history->count; i++) {
        times[i] = hvd_straggler_history_span_us(history, i);
    }
    if (history->count > 0) {
        qsort(times, (size_t)history->count, sizeof(times[0]), compare_times);
        least_us = times[history->count / 2] / 100;
    }
    return least_us > 1 ? least_us : 1;
}

/* The first column has the start of the program, and the last one may be incomplete: they
 * are left out if there are others. */
static double score_individually(const struct hvd_straggler_history *history, int rank,
                                 int64_t least_us, int64_t *times)
{
    int first = history->count > 2 ? 1 : 0;
    int columns = history->count > 3 ? history->count - 2 : history->count - first;
    int periods = columns < PERIODS ? columns : PERIODS;
    int64_t best = INT64_MAX, last = 0;

    for (int i = 0; i < periods; i++) {
        last = median_of(history, rank, first + columns * i / periods,
                         first + columns * (i + 1) / periods, times);
        best = last < best ? last : best;
    }
    return periods > 0 ? ratio_of(best, last, least_us) : 1;
}

int hvd_straggler_history_score(const struct hvd_straggler_history *history,
                                struct hvd_straggler_scores *scores)
{
    int64_t *times = calloc((size_t)history->room, sizeof(times[0]));
    int64_t *medians = calloc((size_t)history->size, sizeof(medians[0]));
    int status = times != NULL && medians != NULL ? 0 : HVD_ERR_NOMEM;
    int64_t best = INT64_MAX;
    int first = history->count > 2 ? 1 : 0;
    int64_t least_us = status == 0 ? least_time(history, times) : 1;

    for (int i = 0; status == 0 && i < history->size; i++) {
        medians[i] = median_of(history, i, first, history->count, times);
        best = medians[i] < best ? medians[i] : best;
    }
    for (int i = 0; status == 0 && i < history->size; i++) {
        scores[i].relative = ratio_of(best, medians[i], least_us);
        scores[i].individual = score_individually(history, i, least_us, times);
    }
    free(times);
    free(medians);
    return status;
}
