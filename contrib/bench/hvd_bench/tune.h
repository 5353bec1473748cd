/* SPDX-License-Identifier: Apache-2.0 */
/* --tune: times the algorithms that a table can name, on this job, and writes the table.
 * Other than the autotuner of a running job, which chooses how much is fused and how
 * often ranks agree. */
#ifndef HVD_BENCH_TUNE_H
#define HVD_BENCH_TUNE_H

#include "contrib/bench/hvd_bench/measure.h"

/* Collective. Prints what was measured on rank 0, which then writes options->tune, a
 * section of this job's shape; those of other shapes that the file has stay. */
int bench_tune(struct bench_field *field, struct hvd_error *err);

#endif
