/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a timeline. */
#include "collectives/trace/trace_rows.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Names that are used only once ("allreduce.noname.17") must not fill the memory. */
static const int most_rows = 65536;

static int compare_rows(const void *a, const void *b)
{
    const struct hvd_trace_row *one = a, *other = b;

    if (one->set != other->set) {
        return one->set < other->set ? -1 : 1;
    }
    return strcmp(one->name, other->name);
}

static void row_free(struct hvd_trace_row *row)
{
    free((char *)row->name);
    free(row->early);
    free(row);
}

struct hvd_trace_row *hvd_trace_rows_find(const struct hvd_trace_rows *rows, int32_t set,
                                          const char *name)
{
    const struct hvd_trace_row key = {.set = set, .name = name};
    struct hvd_trace_row **found = tfind(&key, &rows->by_name, compare_rows);

    return found != NULL ? *found : NULL;
}

static void forget_idle(struct hvd_trace_rows *rows)
{
    struct hvd_trace_row **link = &rows->first;

    while (*link != NULL) {
        struct hvd_trace_row *row = *link;

        if (row->state != HVD_ROW_IDLE) {
            link = &row->next;
            continue;
        }
        *link = row->next;
        tdelete(row, &rows->by_name, compare_rows);
        row_free(row);
        rows->count--;
    }
}

struct hvd_trace_row *hvd_trace_rows_make(struct hvd_trace_rows *rows, int32_t set,
                                          const char *name)
{
    struct hvd_trace_row *row = hvd_trace_rows_find(rows, set, name);

    if (row != NULL) {
        return row;
    }
    if (rows->count >= most_rows) {
        forget_idle(rows);
    }
    row = calloc(1, sizeof(*row));
    if (row == NULL) {
        return NULL;
    }
    row->set = set;
    row->name = strdup(name);
    if (row->name == NULL || tsearch(row, &rows->by_name, compare_rows) == NULL) {
        row_free(row);
        return NULL;
    }
    row->next = rows->first;
    rows->first = row;
    rows->count++;
    return row;
}

void hvd_trace_row_keep_early(struct hvd_trace_row *row, int rank, int most)
{
    if (row->early_count >= most) {
        return;
    }
    if (row->early_count == row->early_capacity) {
        int capacity = row->early_capacity > 0 ? 2 * row->early_capacity : 8;
        int *early = realloc(row->early, (size_t)capacity * sizeof(early[0]));

        if (early == NULL) {
            return;
        }
        row->early = early;
        row->early_capacity = capacity;
    }
    row->early[row->early_count++] = rank;
}

void hvd_trace_rows_finish(struct hvd_trace_rows *rows)
{
    while (rows->first != NULL) {
        struct hvd_trace_row *row = rows->first;

        rows->first = row->next;
        tdelete(row, &rows->by_name, compare_rows);
        row_free(row);
    }
    *rows = (struct hvd_trace_rows){0};
}
