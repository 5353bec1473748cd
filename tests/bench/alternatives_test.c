/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the rows of a table from invented times. */
#include "contrib/bench/hvd_bench/alternatives.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "tests/tap.h"

enum {
    SIZES = 13,
    ROUNDS = 11,
    TURNS = 3,
};

static const struct hvd_job_shape four = {.nodes = 1, .ranks = 4};

/* An algorithm whose call takes a constant time, and then moves bytes at a constant
 * rate. */
struct made_up {
    const char *name;
    double start;
    double second_bytes;
};

/* Returns a number between 0 and 1 from the seed. */
static double random_share(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return (double)(*seed >> 8 & 0xffff) / 0x10000;
}

/* Returns the factor, 1 or more, by which other programs on the machine slow a call
 * down. */
static double noise(unsigned *seed, double most)
{
    return 1 + most * random_share(seed) * random_share(seed);
}

static double seconds_of(const struct made_up *machine, const char *name, double bytes)
{
    for (; machine->name != NULL; machine++) {
        if (strcmp(machine->name, name) == 0) {
            return machine->start + bytes / machine->second_bytes;
        }
    }
    return 1;
}

static void add_turn(struct bench_sweep_size *size, int alternative,
                     const double times[2], double most_noise, unsigned *seed)
{
    double quotients[ROUNDS];
    struct bench_spread spread;

    for (int round = 0; round < ROUNDS; round++) {
        quotients[round] =
            times[0] * noise(seed, most_noise) / (times[1] * noise(seed, most_noise));
    }
    spread = bench_spread_of(quotients, ROUNDS);
    bench_cell_add(&size->cells[alternative], times[0] * spread.median, &spread);
}

/* Returns the rows for allreduce after a sweep from 8 bytes to 64 MiB, by factors of
 * 4. */
static struct hvd_algorithm_rows tune(const struct made_up *machine,
                                      struct hvd_job_shape shape, double most_noise,
                                      unsigned seed)
{
    static struct bench_sweep_size sizes[SIZES];
    struct bench_alternatives all;
    struct hvd_algorithm_rows list;
    int chosen[SIZES];

    memset(sizes, 0, sizeof(sizes));
    bench_alternatives_list(HVD_COLL_ALLREDUCE, shape, &all);
    for (int i = 0; i < SIZES; i++) {
        sizes[i].bytes = INT64_C(8) << 2 * i >> (i == SIZES - 1 ? 1 : 0);
        sizes[i].usual =
            bench_alternative_usual(&all, HVD_COLL_ALLREDUCE, shape, sizes[i].bytes);
        for (int k = 0; k < all.count * TURNS; k++) {
            const struct bench_alternative *item = &all.items[k % all.count];
            const char *usual = all.items[sizes[i].usual].name;
            double bytes = (double)sizes[i].bytes;
            const double times[2] = {seconds_of(machine, item->name, bytes),
                                     seconds_of(machine, usual, bytes)};

            if (bench_alternative_fits(item, sizes[i].bytes)) {
                add_turn(&sizes[i], k % all.count, times, most_noise, &seed);
            }
        }
        chosen[i] = bench_alternative_choose(&sizes[i], all.count);
    }
    bench_alternatives_rows(&all, HVD_COLL_ALLREDUCE, shape, sizes, chosen, SIZES, &list);
    return list;
}

static bool is_row(const struct hvd_algorithm_rows *list, int row, int64_t least,
                   int64_t most, enum hvd_algorithm algorithm)
{
    bool is_right = row < list->count && list->rows[row].from >= least &&
                    list->rows[row].from <= most &&
                    list->rows[row].algorithm == algorithm;

    for (int i = 0; !is_right && i < list->count; i++) {
        tap_note("row %d: from %lld %s chunk %zu", i, (long long)list->rows[i].from,
                 hvd_algorithm_name(list->rows[i].algorithm), list->rows[i].chunk_bytes);
    }
    return is_right;
}

static bool is_usual(const struct hvd_algorithm_rows *list, struct hvd_job_shape shape)
{
    struct hvd_algorithm_choices usual;
    const struct hvd_algorithm_rows *other = &usual.of[HVD_COLL_ALLREDUCE];
    bool is_same;

    hvd_algorithm_choices_builtin(shape, &usual);
    is_same = list->count == other->count;
    for (int i = 0; is_same && i < list->count; i++) {
        is_same = is_row(list, i, other->rows[i].from, other->rows[i].from,
                         other->rows[i].algorithm) &&
                  list->rows[i].chunk_bytes == 0;
    }
    return is_same;
}

/* two_shot is faster than one_shot from 200 KB on, not from 16 KiB. */
static const struct made_up late_crossing[] = {
    {"ll", 1e-7, 1e9},
    {"one_shot", 1e-6, 2e9},
    {"two_shot", 51e-6, 4e9},
    {NULL, 0, 0},
};

/* All alternatives take the same time. */
static const struct made_up alike[] = {
    {"ll", 1e-6, 1e9},
    {"one_shot", 1e-6, 1e9},
    {"one_shot chunk=64K", 1e-6, 1e9},
    {"one_shot chunk=128K", 1e-6, 1e9},
    {"one_shot chunk=256K", 1e-6, 1e9},
    {"two_shot", 1e-6, 1e9},
    {"two_shot chunk=64K", 1e-6, 1e9},
    {"two_shot chunk=128K", 1e-6, 1e9},
    {"two_shot chunk=256K", 1e-6, 1e9},
    {"linear", 1e-6, 1e9},
    {"linear lanes=one", 1e-6, 1e9},
    {"linear chunk=64K", 1e-6, 1e9},
    {NULL, 0, 0},
};

/* two_shot in chunks of 64 KiB is better than everything. */
static const struct made_up small_chunks[] = {
    {"ll", 1e-6, 1e9},
    {"one_shot", 1e-6, 1e9},
    {"two_shot", 1e-5, 2e9},
    {"two_shot chunk=64K", 1e-5, 3e9},
    {NULL, 0, 0},
};

static void test_quiet(void)
{
    struct hvd_algorithm_rows list = tune(late_crossing, four, 0, 1);

    tap_ok(list.count == 3 && is_row(&list, 0, 0, 0, HVD_ALGORITHM_LL) &&
               is_row(&list, 1, 25, 25, HVD_ALGORITHM_ONE_SHOT) &&
               is_row(&list, 2, 200000, 1 << 19, HVD_ALGORITHM_TWO_SHOT),
           "an algorithm holds from the first measured size on at which it is faster");
    list = tune(small_chunks, four, 0, 1);
    tap_ok(is_row(&list, list.count - 1, 65536, 1 << 18, HVD_ALGORITHM_TWO_SHOT) &&
               list.rows[list.count - 1].chunk_bytes == 64 << 10,
           "a chunk size also holds from that size on");
    list = tune(alike, four, 0, 1);
    tap_ok(is_usual(&list, four),
           "if all are equally fast, the table is the built-in one");
}

/* Each check goes wrong in about one sweep of 100, so 11 of 50 show a defect. */
static void test_noise(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));
    int stayed = 0, found = 0;

    for (unsigned i = 0; i < 50; i++) {
        struct hvd_algorithm_rows list = tune(alike, four, 0.5, seed + i);

        stayed += is_usual(&list, four);
        list = tune(late_crossing, four, 0.5, seed + i);
        found += list.count >= 3 && list.rows[list.count - 1].from > 100000 &&
                 list.rows[list.count - 1].from < 600000 &&
                 list.rows[list.count - 1].algorithm == HVD_ALGORITHM_TWO_SHOT;
    }
    tap_ok(stayed >= 40, "noise of 50 %% is taken for a gain in %d of 50 sweeps",
           50 - stayed);
    tap_ok(found >= 40, "the crossing is found in spite of noise in %d of 50", found);
}

/* Whatever the times are, the table can be read and names no algorithm that was slower
 * everywhere. */
static void test_any_times(void)
{
    static const struct hvd_job_shape shapes[] = {
        {1, 2, HVD_PROCESSOR_OTHER}, {1, 2, HVD_PROCESSOR_AMD},
        {1, 4, HVD_PROCESSOR_OTHER}, {1, 4, HVD_PROCESSOR_AMD},
        {2, 1, HVD_PROCESSOR_OTHER}, {2, 2, HVD_PROCESSOR_OTHER},
        {8, 4, HVD_PROCESSOR_OTHER}};
    unsigned seed = tap_seed((unsigned)time(NULL));
    bool is_right = true;

    for (unsigned i = 0; i < 500 && is_right; i++) {
        struct hvd_job_shape shape = shapes[i % (sizeof(shapes) / sizeof(shapes[0]))];
        struct hvd_algorithm_rows list = tune(alike, shape, 30, seed + i);

        is_right = list.count > 0 && list.rows[0].from == 0;
        for (int row = 0; row < list.count && is_right; row++) {
            int64_t next = row + 1 < list.count ? list.rows[row + 1].from : INT64_MAX;

            is_right = next > list.rows[row].from &&
                       hvd_algorithm_misfit(&list.rows[row], HVD_COLL_ALLREDUCE, shape,
                                            next - 1) == NULL;
        }
    }
    tap_ok(is_right, "any times give a table that can be read");
}

static void test_cells(void)
{
    const struct bench_spread first = {0.7, 0.8, 0.9, 0.95, 1.2};
    const struct bench_spread second = {0.9, 0.95, 1.0, 1.1, 1.3};
    struct bench_cell cell = {0};

    bench_cell_add(&cell, 2e-6, &first);
    bench_cell_add(&cell, 1e-6, &second);
    tap_ok(cell.turns == 2 && cell.seconds == 1e-6 && cell.high == 1.1 &&
               fabs(cell.middle - sqrt(0.9)) < 1e-12,
           "the results of turns are combined");
}

int main(void)
{
    test_quiet();
    test_noise();
    test_any_times();
    test_cells();
    return tap_done();
}
