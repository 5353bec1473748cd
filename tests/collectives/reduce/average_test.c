/* SPDX-License-Identifier: Apache-2.0 */
/* Tests averages of integers: exact quotients for every number of ranks, for all values,
 * and for the kernels of every instruction set that this CPU has. */
#include <inttypes.h>
#include <string.h>

#include "collectives/reduce/reduce.h"
#include "collectives/reduce/reduce_kernels.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/reduce/random_bits.h"
#include "tests/tap.h"

enum {
    MOST_RANKS = 1024,
    COUNT = 24, /* elements per rank */
    DIVISORS = 3000,
    VALUES = 200, /* values per divisor */
};

static const enum hvd_dtype dtypes[] = {HVD_INT8,  HVD_UINT8,  HVD_INT16, HVD_UINT16,
                                        HVD_INT32, HVD_UINT32, HVD_INT64, HVD_UINT64};

/* --- plain arithmetic --- */

static uint64_t load(enum hvd_dtype dtype, const char *array, int i)
{
    size_t bytes = hvd_dtype_bytes(dtype);
    uint64_t bits = 0;

    memcpy(&bits, array + (size_t)i * bytes, bytes);
    return value_of_bits(dtype, bits);
}

static void store(enum hvd_dtype dtype, uint64_t value, char *array, int i)
{
    size_t bytes = hvd_dtype_bytes(dtype);

    memcpy(array + (size_t)i * bytes, &value, bytes);
}

/* --- average over ranks --- */

static char arrays[MOST_RANKS][COUNT * 8];

/* Returns element i of a rank. The first six are the same on all ranks: 1, -1, the limits
 * of the type, their neighbours and 0. The others are limits and numbers of any size. */
static uint64_t value_at(enum hvd_dtype dtype, int i)
{
    uint64_t top = UINT64_C(1) << (8 * hvd_dtype_bytes(dtype) - 1);
    const uint64_t limits[] = {1, UINT64_MAX, top, top - 1, top + 1, 0};

    if (i < 6) {
        return limits[i];
    }
    return i % 3 == 0 ? limits[random_bits() / 8 % 6]
                      : random_bits() >> random_bits() / 8 % 64;
}

static bool averages(enum hvd_dtype dtype, int ranks)
{
    struct hvd_reduction reduction = hvd_reduction_of(dtype, HVD_AVERAGE);
    const void *sources[MOST_RANKS];
    uint64_t sums[COUNT] = {0};
    char found[COUNT * 8];

    reduction.divisor = (uint32_t)ranks;
    for (int rank = 0; rank < ranks; rank++) {
        sources[rank] = arrays[rank];
        for (int i = 0; i < COUNT; i++) {
            uint64_t value = value_at(dtype, i);

            store(dtype, value, arrays[rank], i);
            sums[i] += value;
        }
    }
    hvd_reduce(&reduction, sources, ranks, COUNT, found);
    for (int i = 0; i < COUNT; i++) {
        uint64_t wanted = value_quotient(dtype, sums[i], (uint32_t)ranks);

        if (load(dtype, found, i) != wanted) {
            tap_note("element %d over %d ranks is %" PRId64 ", not %" PRId64, i, ranks,
                     (int64_t)load(dtype, found, i), (int64_t)wanted);
            return false;
        }
    }
    return true;
}

static bool averages_over_all(enum hvd_dtype dtype)
{
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        if (!averages(dtype, ranks)) {
            return false;
        }
    }
    return true;
}

/* --- division by any divisor --- */

static uint32_t any_divisor(int trial)
{
    uint32_t any = (uint32_t)(random_bits() >> 33) >> random_bits() / 8 % 31;

    return trial < 1024 ? 2 + (uint32_t)trial
           : any < 2    ? INT32_MAX - (uint32_t)trial % 3
                        : any;
}

/* Returns a value next to a multiple of the divisor, where the quotient changes. */
static uint64_t any_value(uint32_t divisor)
{
    uint64_t any = random_bits() >> random_bits() / 8 % 64;

    return any / divisor * divisor + random_bits() / 8 % 3 - 1;
}

static bool divides(const struct hvd_kernels *kernels, enum hvd_dtype dtype)
{
    char values[VALUES * 8], found[VALUES * 8];

    for (int trial = 0; trial < DIVISORS; trial++) {
        uint32_t divisor = any_divisor(trial);

        for (int i = 0; i < VALUES; i++) {
            store(dtype, any_value(divisor), values, i);
        }
        kernels->average(1.0, divisor, values, found, VALUES);
        for (int i = 0; i < VALUES; i++) {
            uint64_t value = load(dtype, values, i);

            if (load(dtype, found, i) != value_quotient(dtype, value, divisor)) {
                tap_note("%" PRId64 " by %u is %" PRId64, (int64_t)value, divisor,
                         (int64_t)load(dtype, found, i));
                return false;
            }
        }
    }
    return true;
}

/* Whether factor and divisor are applied together, before the result is rounded to an
 * integer. */
static bool scales_once(void)
{
    struct hvd_reduction reduction = hvd_reduction_of(HVD_INT32, HVD_AVERAGE);
    const int32_t value = 49;
    const void *source = &value;
    int32_t found = 0;

    reduction.postscale = 2.0;
    reduction.divisor = 98;
    hvd_reduce(&reduction, &source, 1, 1, &found);
    return found == 1;
}

int main(void)
{
    random_begin();
    for (size_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
        const char *name = hvd_dtype_name(dtypes[k]);

        tap_ok(averages_over_all(dtypes[k]),
               "averages of %s over 1 to %d ranks are exact", name, MOST_RANKS);
        for (int level = 0; level <= (int)hvd_kernel_level(); level++) {
            const struct hvd_kernels *kernels =
                hvd_kernels_at((enum hvd_kernel_level)level, dtypes[k]);

            tap_ok(divides(kernels, dtypes[k]), "%s: %s divided by any divisor is exact",
                   hvd_kernel_level_name((enum hvd_kernel_level)level), name);
        }
    }
    tap_ok(scales_once(), "an average with a postscale is truncated once");
    return tap_done();
}
