/* SPDX-License-Identifier: Apache-2.0 */
/* The check of results passes right results and finds wrong ones. */
#include "contrib/bench/hvd_bench/values.h"

#include <string.h>

#include "collectives/reduce/reduce.h"
#include "contrib/bench/hvd_bench/work.h"
#include "tests/tap.h"

enum {
    RANKS = 3,
    MOST = 4096, /* bytes of a buffer */
    MOST_RANKS = 1100 /* for averages */
};

/* Returns the work of rank `rank`. */
static struct bench_work work_of(enum bench_collective collective, enum hvd_dtype dtype,
                                 enum hvd_op op, int rank)
{
    struct bench_work work = {.collective = collective,
                              .dtype = dtype,
                              .op = op,
                              .wanted = MOST,
                              .rank = rank,
                              .size = RANKS};

    if (bench_work_init(&work, NULL) == 0) {
        bench_work_fill(&work);
    }
    return work;
}

/* Computes the allreduce of the inputs of all ranks, element by element. */
static void reduce(enum hvd_dtype dtype, enum hvd_op op, char *output)
{
    struct bench_work works[RANKS];

    for (int rank = 0; rank < RANKS; rank++) {
        works[rank] = work_of(BENCH_ALLREDUCE, dtype, op, rank);
    }
    for (int64_t i = 0; i < works[0].input_count; i++) {
        size_t at = (size_t)i * works[0].element;
        double value = bench_value_load(dtype, works[0].input + at);

        for (int rank = 1; rank < RANKS; rank++) {
            double next = bench_value_load(dtype, works[rank].input + at);

            value = op == HVD_PRODUCT ? value * next
                    : op == HVD_MIN   ? (next < value ? next : value)
                    : op == HVD_MAX   ? (next > value ? next : value)
                                      : value + next;
        }
        bench_value_store(dtype, op == HVD_AVERAGE ? value / RANKS : value, output + at);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        bench_work_finish(&works[rank]);
    }
}

static bool accepts_right_and_not_wrong(enum hvd_dtype dtype, enum hvd_op op)
{
    struct bench_work work = work_of(BENCH_ALLREDUCE, dtype, op, 1);
    char output[MOST];
    bool accepts, refuses;
    size_t last = (size_t)(work.output_count - 1) * work.element;

    reduce(dtype, op, output);
    accepts = bench_work_check(&work, output, "test", NULL) == 0;
    bench_value_store(dtype, bench_value_load(dtype, output + last) + 1, output + last);
    refuses = bench_work_check(&work, output, "test", NULL) == HVD_ERR_MISMATCH &&
              bench_work_check(&work, work.input, "test", NULL) == HVD_ERR_MISMATCH &&
              bench_work_check(&work, work.output, "test", NULL) == HVD_ERR_MISMATCH;
    bench_work_finish(&work);
    return accepts && refuses;
}

static void check_reduced(void)
{
    static const enum hvd_op ops[] = {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                      HVD_PRODUCT};
    static const enum hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                            HVD_FLOAT64, HVD_INT32,    HVD_UINT8};

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        bool good = true;

        for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++) {
            good &= accepts_right_and_not_wrong(dtypes[i], ops[op]);
        }
        tap_ok(good, "%s: the right result passes, one wrong element does not",
               hvd_dtype_name(dtypes[i]));
    }
}

/* Whether the check accepts the right result of allgather, gather or alltoall, and
 * rejects it when two blocks are exchanged. */
static bool knows_places(enum bench_collective collective)
{
    int receiver = collective == BENCH_GATHER ? 0 : 1;
    struct bench_work mine = work_of(collective, HVD_INT32, HVD_SUM, receiver);
    size_t block = (size_t)mine.output_count / RANKS * mine.element;
    char output[MOST], exchanged[MOST];
    bool accepts, refuses;

    for (int rank = 0; rank < RANKS; rank++) {
        struct bench_work work = work_of(collective, HVD_INT32, HVD_SUM, rank);
        size_t from = collective == BENCH_ALLTOALL ? block : 0; /* the block for rank 1 */

        memcpy(output + (size_t)rank * block, work.input + from, block);
        bench_work_finish(&work);
    }
    memcpy(exchanged, output, sizeof(output));
    memcpy(exchanged, output + block, block);
    memcpy(exchanged + block, output, block);
    accepts = bench_work_check(&mine, output, "test", NULL) == 0;
    refuses = bench_work_check(&mine, exchanged, "test", NULL) == HVD_ERR_MISMATCH;
    bench_work_finish(&mine);
    return accepts && refuses;
}

/* Whether the check of a scatter rejects the result of another rank, and the check of a
 * reduce accepts any output on ranks other than the root. */
static bool knows_root(void)
{
    struct bench_work root = work_of(BENCH_SCATTER, HVD_INT32, HVD_SUM, 0);
    struct bench_work other = work_of(BENCH_SCATTER, HVD_INT32, HVD_SUM, 1);
    struct bench_work reduced = work_of(BENCH_REDUCE, HVD_INT32, HVD_SUM, 1);
    const char *second = root.input + (size_t)root.output_count * root.element;
    bool good = bench_work_check(&root, root.input, "test", NULL) == 0 &&
                bench_work_check(&other, second, "test", NULL) == 0 &&
                bench_work_check(&other, root.input, "test", NULL) == HVD_ERR_MISMATCH &&
                bench_work_check(&reduced, reduced.output, "test", NULL) == 0;

    reduced.rank = 0;
    good = good &&
           bench_work_check(&reduced, reduced.output, "test", NULL) == HVD_ERR_MISMATCH;
    bench_work_finish(&root);
    bench_work_finish(&other);
    bench_work_finish(&reduced);
    return good;
}

/* Whether expected averages of `size` ranks equal those that hvd computes. Each source is
 * one rank's value of a phase. */
static bool agrees_with_hvd(enum hvd_dtype dtype, int size)
{
    struct hvd_reduction reduction = hvd_reduction_of(dtype, HVD_AVERAGE);
    static int64_t inputs[MOST_RANKS];
    const void *sources[MOST_RANKS];
    bool agrees = true;

    reduction.divisor = (uint32_t)size;
    for (int phase = 0; phase < BENCH_PERIOD; phase++) {
        int64_t found = 0, wanted = 0;

        for (int rank = 0; rank < size; rank++) {
            bench_value_store(dtype, bench_value(HVD_AVERAGE, rank, size, phase),
                              &inputs[rank]);
            sources[rank] = &inputs[rank];
        }
        hvd_reduce(&reduction, sources, size, 1, &found);
        bench_value_store(dtype, bench_value_reduced(HVD_AVERAGE, dtype, size, phase),
                          &wanted);
        if (found != wanted) {
            tap_note("%s of %d ranks, phase %d: bits %llx, expected %llx",
                     hvd_dtype_name(dtype), size, phase, (unsigned long long)wanted,
                     (unsigned long long)found);
            agrees = false;
        }
    }
    return agrees;
}

static void check_averages(void)
{
    static const enum hvd_dtype dtypes[] = {HVD_UINT8, HVD_INT8,  HVD_UINT16,
                                            HVD_INT16, HVD_INT32, HVD_INT64};
    bool agrees = true;

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        for (int size = 1; size <= MOST_RANKS && agrees; size++) {
            agrees = agrees_with_hvd(dtypes[i], size);
        }
    }
    tap_ok(agrees,
           "expected averages of integers are those of hvd, for any number of ranks");
}

int main(void)
{
    check_reduced();
    tap_ok(knows_places(BENCH_ALLGATHER), "allgather: blocks in another order are wrong");
    tap_ok(knows_places(BENCH_ALLTOALL), "alltoall: blocks in another order are wrong");
    tap_ok(knows_places(BENCH_GATHER), "gather: blocks in another order are wrong");
    tap_ok(knows_root(), "collectives with a root: each rank's part is checked, on the "
                         "ranks that have output");
    check_averages();
    return tap_done();
}
