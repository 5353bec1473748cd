/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results: a table for people, JSON for programs. Only rank 0 calls these
 * functions. */
#ifndef HVD_BENCH_REPORT_H
#define HVD_BENCH_REPORT_H

#include <stdio.h>

#include "contrib/bench/hvd_bench/measure.h"

struct bench_report {
    struct bench_field *field;
    FILE *json; /* NULL: none */
    char json_path[4096];
    int rows; /* rows in json so far */
    int printed; /* rows that a format has printed */
    double busbw; /* their sum in GB/s */
    /* the last head of the table, which is printed again when the kind of work changes */
    char title[80];
};

/* Prints the head of the table, and opens the JSON file if --json or --plot asks for it.
 * Returns HVD_ERR_SYS if the file cannot be written. */
int bench_report_begin(struct bench_report *report, struct bench_field *field, int argc,
                       char **argv, struct hvd_error *err);

/* Writes the rows of one work, as bench_measure filled them. */
void bench_report_rows(struct bench_report *report, const struct bench_work *work,
                       const struct bench_row *rows);

/* Closes the file, and draws the plot if --plot asks for it and the run has succeeded. */
int bench_report_end(struct bench_report *report, bool has_succeeded,
                     struct hvd_error *err);

/* Reads Linux's name of the processor into `name`, "" if unknown; returns name. */
const char *bench_processor_read(char *name, size_t room);

#endif
