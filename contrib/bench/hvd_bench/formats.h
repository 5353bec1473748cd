/* SPDX-License-Identifier: Apache-2.0 */
/* Prints results as the OSU micro-benchmarks and nccl-tests do, for programs that read
 * their output. Pure. */
#ifndef HVD_BENCH_FORMATS_H
#define HVD_BENCH_FORMATS_H

#include <stdio.h>

#include "contrib/bench/hvd_bench/measure.h"

/* Returns NULL if the format has rows for the collective, else the reason why not. */
const char *bench_format_lacks(enum bench_format format,
                               enum bench_collective collective);

/* Prints the line, or lines, that name the columns. title: of the work. */
void bench_format_columns(enum bench_format format, const struct bench_work *work,
                          const char *title, FILE *out);

/* Prints one row. The column "Avg Latency" of the OSU format has the median. hvd-bench
 * writes into another buffer than it reads, so the columns "in-place" of nccl-tests are
 * N/A. */
void bench_format_row(enum bench_format format, const struct bench_work *work,
                      const struct bench_row *row, FILE *out);

/* Prints the last lines. busbw: the mean of all rows in GB/s. */
void bench_format_end(enum bench_format format, double busbw, FILE *out);

#endif
