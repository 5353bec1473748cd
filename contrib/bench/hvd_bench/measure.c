/* SPDX-License-Identifier: Apache-2.0 */
/* Times the contenders: prepare, check, warm up, measure in turns, check again. */
#include "contrib/bench/hvd_bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/algorithm_table.h"

enum {
    MOST_CALLS = 1000000,
    WARM_UP_CALLS = 5,
    SAMPLE_CALLS = 20,
    SAMPLES = 3
};

/* seconds; shorter calls are sampled several at a time */
static const double short_call = 1e-3;
static const double long_call = 0.1; /* seconds; longer calls are sampled once */
/* a block is too long if it takes this many times its share of the time */
static const double too_long = 4;

/* The state of one bench_measure. */
struct race {
    struct bench_field *field;
    struct bench_work *work;
    struct bench_row *rows;
    double *times; /* [contenders * blocks] */
};

static double *times_of(const struct race *race, int contender)
{
    return race->times + (size_t)contender * (size_t)race->field->options->blocks;
}

/* Runs a block. *seconds: how long it took on the slowest rank. */
static int run_block(const struct race *race, int contender, int calls, double *seconds,
                     struct hvd_error *err)
{
    const struct bench_contender *one = &race->field->contenders[contender];
    int status = bench_job_barrier(err);

    if (status == 0) {
        status = one->ops->run(one->self, calls, seconds, err);
        status = bench_job_agree(status, err);
    }
    return status == 0 ? bench_job_most(seconds, 1, err) : status;
}

/* Prepares a contender. One that cannot do this work is left out; one that fails ends the
 * measurement. */
static int prepare_contender(const struct race *race, int contender,
                             struct hvd_error *err)
{
    const struct bench_contender *one = &race->field->contenders[contender];
    struct bench_row *row = &race->rows[contender];
    int status;

    memset(row, 0, sizeof(*row));
    status = one->ops->prepare(one->self, race->work, err);
    status = bench_job_agree(status, err);
    row->is_there = status == 0;
    if (status == HVD_ERR_UNSUPPORTED) {
        snprintf(row->reason, sizeof(row->reason), "%.150s", err->text);
        status = 0;
    }
    return status;
}

static int check_contender(const struct race *race, int contender, struct hvd_error *err)
{
    const struct bench_contender *one = &race->field->contenders[contender];
    double seconds;
    int status;

    bench_work_fill(race->work);
    if (one->ops->check != NULL) {
        status = one->ops->check(one->self, err);
    } else {
        /* a rank that fails may leave wrong results on other ranks */
        status = bench_job_agree(one->ops->run(one->self, 1, &seconds, err), err);
        if (status == 0) {
            status = bench_work_check(race->work, race->work->output, one->name, err);
        }
    }
    return bench_job_agree(status, err);
}

/* Runs a few short blocks and returns the time of the fastest, because other programs may
 * have disturbed the rest. */
static int sample_block(const struct race *race, int contender, int calls,
                        double *seconds, struct hvd_error *err)
{
    int status = run_block(race, contender, calls, seconds, err);

    for (int i = 1; i < SAMPLES && status == 0 && *seconds < long_call; i++) {
        double again;

        status = run_block(race, contender, calls, &again, err);
        *seconds = status == 0 && again < *seconds ? again : *seconds;
    }
    return status;
}

/* Warms up, then computes how many calls fill a block. */
static int choose_calls(const struct race *race, int contender, struct hvd_error *err)
{
    const struct bench_options *options = race->field->options;
    double block = options->seconds / options->blocks, seconds = 0, calls;
    int status = run_block(race, contender, WARM_UP_CALLS, &seconds, err), sample = 1;

    if (status == 0) {
        status = sample_block(race, contender, sample, &seconds, err);
    }
    while (status == 0 && seconds < short_call && sample < MOST_CALLS / SAMPLE_CALLS) {
        sample *= SAMPLE_CALLS;
        status = sample_block(race, contender, sample, &seconds, err);
    }
    calls = block / (seconds / sample);
    race->rows[contender].calls = calls < 1            ? 1
                                  : calls > MOST_CALLS ? MOST_CALLS
                                                       : (int)calls;
    return status;
}

/* Reduces the calls of the next block if this one took far too long, for example because
 * other programs have begun to use the machine. All ranks have the same times, so they
 * agree. */
static void shorten_blocks(const struct race *race, int contender, double seconds)
{
    const struct bench_options *options = race->field->options;
    double block = options->seconds / options->blocks;
    struct bench_row *row = &race->rows[contender];

    if (seconds > too_long * block && row->calls > 1) {
        double calls = row->calls * block / seconds;

        row->calls = calls < 1 ? 1 : (int)calls;
    }
}

static void show_progress(const struct race *race, double part)
{
    struct bench_progress *progress = &race->field->progress;
    const struct bench_work *work = race->work;
    char size[32], what[64];

    hvd_algorithm_size_write(work->bytes, size, sizeof(size));
    snprintf(what, sizeof(what), "%s %s", bench_collective_name(work->collective),
             work->collective == BENCH_BARRIER ? "" : size);
    bench_progress_show(progress, part, what, bench_now());
}

/* Runs one block of each contender. In each round another contender goes first. */
static int run_round(const struct race *race, int round, struct hvd_error *err)
{
    int count = race->field->count, status = 0;

    for (int i = 0; i < count && status == 0; i++) {
        int contender = (round + i) % count;
        double seconds;

        if (race->rows[contender].is_there) {
            int calls = race->rows[contender].calls;

            status = run_block(race, contender, calls, &seconds, err);
            times_of(race, contender)[round] = status == 0 ? seconds / calls : 0;
            shorten_blocks(race, contender, status == 0 ? seconds : 0);
        }
    }
    return status;
}

static int for_all(const struct race *race,
                   int (*step)(const struct race *, int, struct hvd_error *),
                   struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < race->field->count && status == 0; i++) {
        if (step == prepare_contender || race->rows[i].is_there) {
            status = step(race, i, err);
        }
    }
    return status;
}

static void fill_rows(const struct race *race)
{
    int blocks = race->field->options->blocks, reference = -1;

    for (int i = 0; i < race->field->count; i++) {
        struct bench_row *row = &race->rows[i];
        double quotients[BENCH_MOST_BLOCKS];

        if (!row->is_there) {
            continue;
        }
        reference = reference < 0 ? i : reference;
        for (int block = 0; block < blocks; block++) {
            quotients[block] =
                times_of(race, i)[block] / times_of(race, reference)[block];
        }
        row->ratios = bench_spread_of(quotients, blocks);
        row->ratio = row->ratios.median;
    }
    for (int i = 0; i < race->field->count; i++) {
        if (race->rows[i].is_there) {
            race->rows[i].seconds = bench_spread_of(times_of(race, i), blocks);
        }
    }
}

static int run_race(const struct race *race, struct hvd_error *err)
{
    int blocks = race->field->options->blocks;
    int status;

    show_progress(race, 0);
    status = for_all(race, prepare_contender, err);
    if (status == 0) {
        status = for_all(race, check_contender, err);
    }
    if (status == 0) {
        status = for_all(race, choose_calls, err);
    }
    for (int round = 0; round < blocks && status == 0; round++) {
        show_progress(race, (double)round / blocks);
        status = run_round(race, round, err);
    }
    if (status == 0) {
        status = for_all(race, check_contender, err);
    }
    if (status == 0) {
        fill_rows(race);
    }
    return status;
}

int bench_measure(struct bench_field *field, struct bench_work *work,
                  struct bench_row *rows, struct hvd_error *err)
{
    struct race race = {.field = field, .work = work, .rows = rows};
    int status;

    race.times =
        calloc((size_t)field->count * (size_t)field->options->blocks, sizeof(double));
    if (race.times == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = run_race(&race, err);
    bench_progress_step(&field->progress);
    for (int i = 0; i < field->count; i++) {
        if (field->contenders[i].ops->finish != NULL) {
            field->contenders[i].ops->finish(field->contenders[i].self);
        }
    }
    free(race.times);
    return status;
}
