/* SPDX-License-Identifier: Apache-2.0 */
/* Times the contenders on one work, in turns. */
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
    struct bench_progress progress; /* shown by rank 0 */
    int count;
    struct bench_contender contenders[BENCH_MOST_CONTENDERS];
};

/* One contender on one work. */
struct bench_row {
    bool is_there; /* else reason says why not */
    char reason[160];
    int calls; /* of a block */
    struct bench_spread seconds; /* of a call */
    /* Its time over that of the first contender that is there: the median of the
     * quotients of neighbouring blocks, so that what slows both down for a while does not
     * show. */
    double ratio;
    struct bench_spread ratios; /* of the blocks */
};

/* Collective. rows: one for each contender. HVD_ERR_MISMATCH when a result is wrong; all
 * ranks get the same status. */
int bench_measure(struct bench_field *field, struct bench_work *work,
                  struct bench_row *rows, struct hvd_error *err);

#endif
