/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what was measured: a table for people, CSV and JSON for programs. Rank 0 alone calls
 * these. */
#ifndef HVD_BENCH_REPORT_H
#define HVD_BENCH_REPORT_H

#include <stdio.h>

#include "contrib/bench/hvd_bench/measure.h"

struct bench_report {
    struct bench_field *field;
    FILE *csv, *json; /* NULL: not wanted */
    char json_path[4096];
    int rows; /* in json so far */
    /* The last head that was printed: it is repeated when the work changes. */
    char title[80];
};

/* Opens the files of the options, prints and writes their heads. command: the command line.
 * HVD_ERR_SYS for a file that cannot be written. */
int bench_report_begin(struct bench_report *report, struct bench_field *field, int argc,
                       char **argv, struct hvd_error *err);

/* One work; rows as bench_measure filled them. */
void bench_report_rows(struct bench_report *report, const struct bench_work *work,
                       const struct bench_row *rows);

/* Draws what --plot asks for, after the end of a run that succeeded. */
int bench_report_draw(const struct bench_report *report, struct hvd_error *err);

/* The processor by the name that Linux has for it, or "". */
const char *bench_processor_read(char *name, size_t room);

#endif
