/* SPDX-License-Identifier: Apache-2.0 */
/* Compares reductions and scaling of random arrays with plain arithmetic. */
#include "collectives/reduce/reduce.h"

#include <math.h>
#include <string.h>

#include "tests/collectives/reduce/random_bits.h"
#include "tests/collectives/reduce/reduce_reference.h"
#include "tests/tap.h"

enum {
    MOST_SOURCES = 9,
    MOST_COUNT = 2600, /* two and a half blocks */
    SLACK = 16, /* elements around an array that must not change */
    ARRAY_BYTES = (MOST_COUNT + 2 * SLACK) * 8,
};

/* A kind of reduction, and whether it reads or writes partial results. */
struct variant {
    enum hvd_dtype dtype;
    enum hvd_op op;
    bool from_partial;
    bool to_partial;
};

static _Alignas(64) char arrays[MOST_SOURCES][ARRAY_BYTES];
static _Alignas(64) char result[ARRAY_BYTES];
static _Alignas(64) char expected[ARRAY_BYTES];

static size_t random_below(size_t end)
{
    return (size_t)((random_bits() >> 16) % end);
}

static struct element random_real(void)
{
    static const double special[] = {NAN,     -NAN,    INFINITY, -INFINITY, 0.0,  -0.0,
                                     0x1p-24, 0x1p-14, 65504,    -65520,    3e38, 1e-45,
                                     2e-39,   1e308,   5e-324,   1.0};
    struct element value = {0};

    if (random_below(8) == 0) {
        value.real = special[random_below(sizeof(special) / sizeof(special[0]))];
    } else {
        value.real = ldexp((double)(int64_t)random_bits(), -63 + (int)random_below(12));
    }
    return value;
}

static void fill(enum hvd_dtype dtype, char *array)
{
    for (size_t i = 0; i < MOST_COUNT + 2 * SLACK; i++) {
        struct element value = {.whole = random_bits() >> random_below(64)};

        if (reference_is_float(dtype)) {
            value = random_real();
        } else if (dtype == HVD_BOOL) {
            value.whole %= 2;
        }
        reference_store(dtype, value, array, i);
    }
}

static double random_factor(void)
{
    static const double factors[] = {1.0, 1.0 / 3, 0.5, -1.5, 1e-3, 1e6, 0.0};

    return factors[random_below(sizeof(factors) / sizeof(factors[0]))];
}

static uint32_t random_divisor(void)
{
    static const uint32_t divisors[] = {0, 1, 2, 3, 49, 1000, INT32_MAX};

    return divisors[random_below(sizeof(divisors) / sizeof(divisors[0]))];
}

/* Loads an element or a partial result. Elements of 16-bit floats are prescaled. */
static struct element load_scaled(const struct hvd_reduction *reduction,
                                  const char *array, size_t i)
{
    enum hvd_dtype dtype = reduction->dtype, partial = reference_partial(dtype);
    struct element value =
        reference_load(reduction->from_partial ? partial : dtype, array, i);

    return partial == dtype || reduction->from_partial
               ? value
               : reference_scale(partial, reduction->prescale, value);
}

/* Reduces elements [first, first + count) of the arrays into `expected`. */
static void reduce_plainly(const struct hvd_reduction *reduction, int sources,
                           size_t first, size_t count)
{
    enum hvd_dtype partial = reference_partial(reduction->dtype);
    enum hvd_dtype to = reduction->to_partial ? partial : reduction->dtype;

    for (size_t i = first; i < first + count; i++) {
        struct element value = load_scaled(reduction, arrays[0], i);

        for (int source = 1; source < sources; source++) {
            value = reference_combine(partial, reduction->op, value,
                                      load_scaled(reduction, arrays[source], i));
        }
        if (!reduction->to_partial) {
            value = reference_average(partial, reduction->postscale, reduction->divisor,
                                      value);
        }
        reference_store(to, value, expected, i);
    }
}

static bool all_equal(enum hvd_dtype dtype, const char *found, size_t first, size_t count)
{
    for (size_t i = 0; i < MOST_COUNT + 2 * SLACK; i++) {
        if (!reference_equal(dtype, found, expected, i)) {
            tap_note("element %zu of [%zu, %zu): expected %a / %llu, found %a / %llu", i,
                     first, first + count, reference_load(dtype, expected, i).real,
                     (unsigned long long)reference_load(dtype, expected, i).whole,
                     reference_load(dtype, found, i).real,
                     (unsigned long long)reference_load(dtype, found, i).whole);
            return false;
        }
    }
    return true;
}

/* Reduces with hvd_reduce or hvd_reduce_stream, at random. */
static bool reduces_to(const struct hvd_reduction *reduction, const void **sources,
                       int source_count, size_t count, char *out)
{
    const char *first = sources[source_count - 1];
    size_t bytes = reduction->from_partial ? hvd_partial_bytes(reduction->dtype)
                                           : hvd_dtype_bytes(reduction->dtype);

    if (random_below(2) == 0) {
        hvd_reduce(reduction, sources, source_count, count, out);
        return true;
    }
    hvd_reduce_stream(reduction, sources, source_count, count, out);
    return sources[source_count - 1] == first + count * bytes;
}

static bool reduces_once(const struct variant *variant)
{
    struct hvd_reduction reduction = hvd_reduction_of(variant->dtype, variant->op);
    enum hvd_dtype partial = reference_partial(variant->dtype);
    enum hvd_dtype from = variant->from_partial ? partial : variant->dtype;
    enum hvd_dtype to = variant->to_partial ? partial : variant->dtype;
    int sources = 1 + (int)random_below(MOST_SOURCES);
    size_t count = random_below(4) == 0 ? random_below(4) : random_below(MOST_COUNT + 1);
    size_t first = random_below(SLACK);
    bool is_in_place = from == to && random_below(3) == 0;
    char *out = is_in_place ? arrays[random_below((size_t)sources)] : result;
    const void *starts[MOST_SOURCES];

    reduction.prescale = random_factor();
    reduction.postscale = random_factor();
    reduction.from_partial = variant->from_partial;
    reduction.to_partial = variant->to_partial;
    reduction.divisor = random_divisor();
    for (int source = 0; source < sources; source++) {
        fill(from, arrays[source]);
        starts[source] = arrays[source] + first * hvd_dtype_bytes(from);
    }
    fill(to, result);
    memcpy(expected, out, ARRAY_BYTES);
    reduce_plainly(&reduction, sources, first, count);
    if (!reduces_to(&reduction, starts, sources, count,
                    out + first * hvd_dtype_bytes(to))) {
        tap_note("the sources are not behind the %zu elements", count);
        return false;
    }
    if (!all_equal(to, out, first, count)) {
        tap_note("%d sources, postscale %g, divisor %u, %s", sources, reduction.postscale,
                 reduction.divisor, is_in_place ? "in place" : "out of place");
        return false;
    }
    return true;
}

static bool reduces(enum hvd_dtype dtype, enum hvd_op op)
{
    for (int trial = 0; trial < 40; trial++) {
        struct variant variant = {dtype, op, trial % 2 == 1, trial / 2 % 2 == 1};

        if (!reduces_once(&variant)) {
            return false;
        }
    }
    return true;
}

static bool scales(enum hvd_dtype dtype)
{
    for (int trial = 0; trial < 40; trial++) {
        double factor = random_factor();
        size_t count = random_below(MOST_COUNT + 1);
        size_t first = random_below(SLACK);
        size_t offset = first * hvd_dtype_bytes(dtype);
        char *out = trial % 2 == 0 ? result : arrays[0];

        fill(dtype, arrays[0]);
        fill(dtype, result);
        memcpy(expected, out, ARRAY_BYTES);
        for (size_t i = first; i < first + count; i++) {
            struct element value = reference_load(dtype, arrays[0], i);

            value = reference_scale(reference_partial(dtype), factor, value);
            reference_store(dtype, value, expected, i);
        }
        hvd_scale(dtype, factor, arrays[0] + offset, out + offset, count);
        if (!all_equal(dtype, out, first, count)) {
            tap_note("factor %g", factor);
            return false;
        }
    }
    return true;
}

/* Whether Min and Max give the same bits if the sources come in the opposite order; all
 * NaN count as equal. */
static bool ignores_order(enum hvd_dtype dtype, enum hvd_op op)
{
    struct hvd_reduction reduction = hvd_reduction_of(dtype, op);
    const void *forwards[] = {arrays[0], arrays[1], arrays[2]};
    const void *backwards[] = {arrays[2], arrays[1], arrays[0]};

    memset(result, 0, sizeof(result));
    memset(expected, 0, sizeof(expected));
    for (int source = 0; source < 3; source++) {
        fill(dtype, arrays[source]);
    }
    hvd_reduce(&reduction, forwards, 3, MOST_COUNT, result);
    hvd_reduce(&reduction, backwards, 3, MOST_COUNT, expected);
    return all_equal(dtype, result, 0, MOST_COUNT);
}

static bool averages_exactly(void)
{
    const int64_t big = INT64_C(9007199254740993); /* 2^53 + 1: no double holds it */
    struct hvd_reduction reduction = hvd_reduction_of(HVD_INT64, HVD_SUM);
    int64_t one = 1;
    int64_t sum = 0;
    const void *sources[] = {&big, &one};

    hvd_reduce(&reduction, sources, 2, 1, &sum);
    return sum == big + 1;
}

static bool rounds_once(void)
{
    /* 2048 + 1 is a tie in float16: if each of the two sums were rounded, both would be
     * 2048. */
    uint16_t values[] = {0x6800, 0x3c00, 0x3c00};
    const void *sources[] = {&values[0], &values[1], &values[2]};
    struct hvd_reduction reduction = hvd_reduction_of(HVD_FLOAT16, HVD_SUM);
    uint16_t sum = 0;

    hvd_reduce(&reduction, sources, 3, 1, &sum);
    return sum == 0x6801;
}

static bool knows_dtypes(void)
{
    return hvd_dtype_bytes(HVD_BFLOAT16) == 2 && hvd_dtype_bytes(HVD_DTYPE_COUNT) == 0 &&
           strcmp(hvd_dtype_name(HVD_FLOAT32), "float32") == 0 &&
           hvd_partial_bytes(HVD_FLOAT16) == 4 && hvd_partial_bytes(HVD_INT8) == 1;
}

int main(void)
{
    /* The bitwise ops exist for integers only. */
    static const enum hvd_op ops[] = {HVD_SUM,     HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                      HVD_PRODUCT, HVD_BAND,    HVD_BOR, HVD_BXOR};
    static const char *const names[HVD_OP_COUNT] = {
        [HVD_SUM] = "sum", [HVD_AVERAGE] = "average",  [HVD_MIN] = "min",
        [HVD_MAX] = "max", [HVD_PRODUCT] = "product",  [HVD_BAND] = "and",
        [HVD_BOR] = "or",  [HVD_BXOR] = "exclusive or"};

    random_begin();
    for (int type = 0; type < HVD_DTYPE_COUNT; type++) {
        const char *name = hvd_dtype_name((enum hvd_dtype)type);

        size_t count = reference_is_float((enum hvd_dtype)type) ? 5 : 8;

        for (size_t i = 0; i < count; i++) {
            tap_ok(reduces((enum hvd_dtype)type, ops[i]), "%s of %s", names[ops[i]],
                   name);
        }
        tap_ok(scales((enum hvd_dtype)type), "%s is scaled as in plain arithmetic", name);
        tap_ok(ignores_order((enum hvd_dtype)type, HVD_MIN) &&
                   ignores_order((enum hvd_dtype)type, HVD_MAX),
               "min and max of %s do not depend on the order of the sources", name);
    }
    tap_ok(averages_exactly(), "64-bit integers keep all bits if postscale is 1");
    tap_ok(rounds_once(), "a float16 sum is rounded once");
    tap_ok(knows_dtypes(), "dtypes have the right names and sizes");
    return tap_done();
}
