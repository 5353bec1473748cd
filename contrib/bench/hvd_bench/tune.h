/* SPDX-License-Identifier: Apache-2.0 */
/* --tune: times the algorithms that a table can name, on this job, and writes the table.
 * The autotuner is something else: it changes fusion threshold and cycle time in a
 * running job. */
#ifndef HVD_BENCH_TUNE_H
#define HVD_BENCH_TUNE_H

#include "contrib/bench/hvd_bench/measure.h"

/* Measures, and prints the figures on rank 0, which then writes a section for this job's
 * shape to the file options->tune. Sections of other shapes in the file are kept.
 * Collective. */
int bench_tune(struct bench_field *field, struct hvd_error *err);

#endif
