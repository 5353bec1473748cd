/* SPDX-License-Identifier: Apache-2.0 */
/* Times the contenders on one work. They take turns: in each round, every contender runs
 * one block, which consists of consecutive calls. */
#ifndef HVD_BENCH_MEASURE_H
#define HVD_BENCH_MEASURE_H

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/progress.h"

enum {
    BENCH_MOST_CONTENDERS = BENCH_MOST_NAMES + 2
};

struct bench_field {
    const struct bench_job *job;
    const struct bench_options *options;
    struct bench_progress progress; /* shown on rank 0 */
    int count;
    struct bench_contender contenders[BENCH_MOST_CONTENDERS];
};

/* The result of one contender on one work. */
struct bench_row {
    bool is_there; /* false if it was not measured: reason says why */
    char reason[160];
    int calls; /* calls of a block */
    struct bench_spread seconds; /* seconds of a call */
    /* The time divided by that of the first contender: the median of the ratios of
     * neighbouring blocks, so that a disturbance that slows both down for a while does
     * not show. */
    double ratio;
    struct bench_spread ratios; /* ratios of the blocks */
};

/* Measures one work. Collective; all ranks get the same status. rows: one for each
 * contender. Returns HVD_ERR_MISMATCH if a result is wrong. */
int bench_measure(struct bench_field *field, struct bench_work *work,
                  struct bench_row *rows, struct hvd_error *err);

#endif
