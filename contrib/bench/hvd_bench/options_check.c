/* SPDX-License-Identifier: Apache-2.0 */
/* Options that do not go together. */
#include "contrib/bench/hvd_bench/options.h"

static int check_wire(const struct bench_options *options, struct hvd_error *err)
{
    bool fits = options->what == BENCH_MEASURE;

    for (int i = 0; i < options->collective_count; i++) {
        fits = fits && options->collectives[i] == BENCH_ALLREDUCE;
    }
    for (int i = 0; i < options->dtype_count; i++) {
        fits = fits && options->dtypes[i] == HVD_FLOAT32;
    }
    for (int i = 0; i < options->op_count; i++) {
        fits = fits && (options->ops[i] == HVD_SUM || options->ops[i] == HVD_AVERAGE);
    }
    return fits || options->wire == 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "--wire is for measuring allreduce of float32 with sum or "
                          "average");
}

/* Lists without sizes have none, and so has a barrier. */
static bool has_sizes(const struct bench_options *options)
{
    bool has_tensors = options->collective_count == 0;

    for (int i = 0; i < options->collective_count; i++) {
        has_tensors = has_tensors || options->collectives[i] != BENCH_BARRIER;
    }
    return has_tensors && (options->sizes.count > 0 || options->lists.count == 0);
}

static int check_measured(const struct bench_options *options,
                          enum bench_collective collective, struct hvd_error *err)
{
    const char *name = bench_collective_name(collective);
    bool is_usual = collective == BENCH_ALLREDUCE || collective == BENCH_BROADCAST;

    if (!is_usual && collective != BENCH_SENDRECV && options->lists.count > 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--list is for allreduce, broadcast and sendrecv, not for %s",
                        name);
    }
    if (!is_usual && options->is_in_place) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--inplace is for allreduce and broadcast, not for %s", name);
    }
    return 0;
}

/* A table has no rows for those by a root: they use the ones of reducescatter and alltoall. */
static int check_explained(enum bench_collective collective, struct hvd_error *err)
{
    const char *name = bench_collective_name(collective);

    if (bench_collective_is_of_pairs(collective)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--explain: %s is messages, which have no steps", name);
    }
    if (collective < BENCH_REDUCE || collective > BENCH_SCATTER) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "--explain: %s runs as %s in which only rank 0 has %s; ask for that",
                    name, collective == BENCH_REDUCE ? "a reducescatter" : "an alltoall",
                    collective == BENCH_SCATTER ? "input" : "output");
}

/* An alltoall plans its second half while it runs, by the job's choices. */
static int check_tuned(enum bench_collective collective, struct hvd_error *err)
{
    return collective == BENCH_ALLTOALL || collective >= BENCH_REDUCE
               ? hvd_fail(err, HVD_ERR_ARG,
                          "--tune: %s has no choice of algorithms that can be timed "
                          "alone",
                          bench_collective_name(collective))
               : 0;
}

int bench_options_check(const struct bench_options *options, struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < options->collective_count && status == 0; i++) {
        enum bench_collective collective = options->collectives[i];

        status = check_measured(options, collective, err);
        if (status == 0 && options->what == BENCH_EXPLAIN) {
            status = check_explained(collective, err);
        } else if (status == 0 && options->what == BENCH_TUNE) {
            status = check_tuned(collective, err);
        }
    }
    if (status != 0) {
        return status;
    }
    if (options->plot != NULL && !has_sizes(options)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--plot draws time against size: expected --sizes, and a "
                        "collective besides barrier");
    }
    if (options->layout != NULL && options->what != BENCH_EXPLAIN) {
        return hvd_fail(err, HVD_ERR_ARG, "--layout is for --explain");
    }
    return check_wire(options, err);
}
