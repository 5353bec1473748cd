/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV and JSON files of a report. */
#ifndef HVD_BENCH_REPORT_FILES_H
#define HVD_BENCH_REPORT_FILES_H

#include "contrib/bench/hvd_bench/report.h"

int bench_files_begin(struct bench_report *report, int argc, char **argv,
                      struct hvd_error *err);
void bench_files_row(struct bench_report *report, const struct bench_work *work,
                     int contender, const struct bench_row *row);

/* Closes them; those of a run that failed are left as they are. HVD_ERR_SYS when not all could
 * be written. */
int bench_files_end(struct bench_report *report, struct hvd_error *err);

/* HVD_ERR_UNSUPPORTED where nothing can be drawn; plot.py has said why. */
int bench_plot_check(struct hvd_error *err);

/* Draws the JSON file as basename.png and .svg with plot.py. HVD_ERR_UNSUPPORTED when that
 * fails; it has said why. */
int bench_plot(const char *json, const char *basename, struct hvd_error *err);

#endif
