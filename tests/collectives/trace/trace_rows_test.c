/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a timeline: found by set and name, and limited in number. */
#include "collectives/trace/trace_rows.h"

#include <stdio.h>

#include "tests/tap.h"

enum {
    MANY = 300000
};

static void rows_are_found(void)
{
    struct hvd_trace_rows rows = {0};
    struct hvd_trace_row *a = hvd_trace_rows_make(&rows, 0, "a");
    struct hvd_trace_row *other = hvd_trace_rows_make(&rows, 1, "a");

    tap_ok(a != NULL && a != other && hvd_trace_rows_make(&rows, 0, "a") == a &&
               hvd_trace_rows_find(&rows, 0, "a") == a &&
               hvd_trace_rows_find(&rows, 1, "a") == other &&
               hvd_trace_rows_find(&rows, 0, "b") == NULL && rows.count == 2,
           "a row is found by process set and name");
    hvd_trace_rows_finish(&rows);
    tap_ok(rows.count == 0 && hvd_trace_rows_find(&rows, 0, "a") == NULL,
           "after finish, there are no rows");
    hvd_trace_rows_finish(&rows);
}

static void memory_is_bounded(void)
{
    struct hvd_trace_rows rows = {0};
    struct hvd_trace_row *busy[HVD_ROW_RUNNING + 1];
    int most = 0, lost = 0;

    for (int state = HVD_ROW_SKIPPED; state <= HVD_ROW_RUNNING; state++) {
        busy[state] = hvd_trace_rows_make(&rows, state, "busy");
        busy[state]->state = state;
    }
    for (int i = 0; i < MANY; i++) {
        char name[64];

        snprintf(name, sizeof(name), "allreduce.noname.%d", i);
        hvd_trace_rows_make(&rows, 0, name);
        most = rows.count > most ? rows.count : most;
    }
    tap_ok(most <= 65536, "%d names take no more than 65536 rows", MANY);
    for (int state = HVD_ROW_SKIPPED; state <= HVD_ROW_RUNNING; state++) {
        lost += hvd_trace_rows_find(&rows, state, "busy") != busy[state];
    }
    tap_ok(lost == 0, "busy rows stay, in whatever state");
    hvd_trace_rows_finish(&rows);
}

static void early_ranks_are_kept(void)
{
    struct hvd_trace_rows rows = {0};
    struct hvd_trace_row *row = hvd_trace_rows_make(&rows, 0, "a");
    int wrong = 0;

    for (int rank = 0; rank < 1000; rank++) {
        hvd_trace_row_keep_early(row, 999 - rank, 900);
    }
    for (int rank = 0; rank < row->early_count; rank++) {
        wrong += row->early[rank] == 999 - rank ? 0 : 1;
    }
    tap_ok(row->early_count == 900 && wrong == 0,
           "early ranks are kept in order, up to the limit");
    hvd_trace_rows_finish(&rows);
}

int main(void)
{
    rows_are_found();
    memory_is_bounded();
    early_ranks_are_kept();
    return tap_done();
}
