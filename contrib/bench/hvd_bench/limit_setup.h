/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory of a hand-written sum, and the choice of its plan. */
#ifndef HVD_BENCH_LIMIT_SETUP_H
#define HVD_BENCH_LIMIT_SETUP_H

#include "contrib/bench/hvd_bench/job.h"
#include "contrib/bench/hvd_bench/limit.h"
#include "contrib/bench/hvd_bench/work.h"

/* Opens memory that the ranks of each node share, and sets up this rank's end.
 * exchange: borrowed; NULL if there is one node. Collective: it succeeds on all ranks or
 * on none. */
int bench_limit_open(struct bench_limit *limit, const struct bench_job *job,
                     const struct bench_limit_exchange *exchange, struct hvd_error *err);

/* Allowed on a zeroed limit. */
void bench_limit_close(struct bench_limit *limit);

/* Returns 0, or HVD_ERR_UNSUPPORTED if the work is no sum of float32. */
int bench_limit_supports(const struct bench_work *work, struct hvd_error *err);

/* Times each plan a few times, in turns, and chooses the fastest. Collective: all ranks
 * choose the same one. */
int bench_limit_choose(struct bench_limit *limit, const struct bench_work *work,
                       struct bench_limit_plan *plan, struct hvd_error *err);

/* Runs the work `calls` times. */
void bench_limit_run(struct bench_limit *limit, const struct bench_work *work,
                     const struct bench_limit_plan *plan, int calls);

#endif
