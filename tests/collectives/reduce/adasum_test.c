/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the arithmetic of Adasum with a plain reference in double. */
#include "collectives/reduce/adasum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/rank_values.h"
#include "tests/collectives/reduce/adasum_reference.h"
#include "tests/tap.h"

enum {
    MOST = 5000, /* elements: several blocks */
};

static const enum hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                        HVD_FLOAT64};
static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 63, 1023, 1024, 1025, 4096, MOST};

enum {
    DTYPES = sizeof(dtypes) / sizeof(dtypes[0]),
    COUNTS = sizeof(counts) / sizeof(counts[0]),
};

static uint32_t seed;

/* Returns a value between -1 and 1 that every dtype holds exactly. */
static double random_value(int vector, int64_t index)
{
    return ((double)(value_random(seed, vector, index) % 257) - 128) / 128;
}

static void test_check(void)
{
    struct hvd_error err = {0};
    bool accepts = true;

    for (int i = 0; i < DTYPES; i++) {
        for (int ranks = 1; ranks <= 1024; ranks *= 2) {
            accepts = accepts && hvd_adasum_check("t", dtypes[i], ranks, &err) == 0;
        }
    }
    tap_ok(accepts, "accepts all float types on 1, 2, 4, ... 1024 ranks");
    tap_ok(hvd_adasum_check("t", HVD_INT32, 2, &err) == HVD_ERR_ARG &&
               strcmp(err.text, "tensor t: Adasum takes float16, bfloat16, float32 and "
                                "float64, not int32") == 0,
           "%s", err.text);
    for (int ranks = 3; ranks <= 12; ranks += 3) {
        tap_ok(hvd_adasum_check("t", HVD_FLOAT32, ranks, &err) == HVD_ERR_UNSUPPORTED &&
                   strcmp(err.text, "Running Adasum with non-power of 2 ranks is not "
                                    "supported yet.") == 0,
               "%d ranks: %s", ranks, err.text);
    }
}

/* Loads elements with the factor 4 and stores them with the factor 1/8, in the same
 * memory. Returns whether all elements then have exactly half of their value. */
static bool travels(enum hvd_dtype dtype, int64_t count)
{
    static double memory[MOST + 1];
    enum hvd_dtype work_dtype = hvd_adasum_work_dtype(dtype);
    size_t distance = hvd_dtype_bytes(work_dtype) - hvd_dtype_bytes(dtype);
    char *raw = (char *)memory + (size_t)count * distance;
    bool is_good = true;

    for (int64_t i = 0; i < count; i++) {
        value_store(dtype, raw, i, random_value(0, i));
    }
    hvd_adasum_load(dtype, 4, raw, memory, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        is_good = is_good && value_load(work_dtype, memory, i) == 4 * random_value(0, i);
    }
    hvd_adasum_store(dtype, 0.125, memory, memory, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        is_good = is_good && value_load(dtype, memory, i) == random_value(0, i) / 2;
    }
    return is_good;
}

static void test_load_and_store(void)
{
    for (int d = 0; d < DTYPES; d++) {
        bool is_good = true;

        for (int i = 0; i < COUNTS; i++) {
            is_good = is_good && travels(dtypes[d], counts[i]);
        }
        tap_ok(is_good, "%s is loaded, scaled and stored in place",
               hvd_dtype_name(dtypes[d]));
    }
}

static void test_single_rounding(void)
{
    /* Slightly less than half a step of float16 above 1: if it were rounded before the
     * multiplication, the result would be 3. */
    float work[2] = {1 + 0x1p-11f - 0x1p-20f, 0};

    hvd_adasum_store(HVD_FLOAT16, 3, work, work, 1);
    tap_ok(value_load(HVD_FLOAT16, work, 0) == 3 + 0x1p-9,
           "store multiplies before it rounds");
}

/* Two vectors of float or double, with their references. */
struct pair {
    enum hvd_dtype dtype;
    int64_t count;
    void *array[2];
    struct adasum_vector expected[2];
};

static struct pair pair_make(enum hvd_dtype dtype, int64_t count,
                             double (*value)(int vector, int64_t index))
{
    struct pair pair = {.dtype = dtype, .count = count};

    for (int v = 0; v < 2; v++) {
        pair.array[v] = malloc(((size_t)count + 1) * sizeof(double));
        pair.expected[v] = adasum_vector_make(count);
        for (int64_t i = 0; i < count; i++) {
            pair.expected[v].value[i] = value(v, i);
            value_store(dtype, pair.array[v], i, value(v, i));
        }
        adasum_vector_begin(&pair.expected[v]);
    }
    return pair;
}

static void pair_finish(struct pair *pair)
{
    for (int v = 0; v < 2; v++) {
        free(pair->array[v]);
        adasum_vector_finish(&pair->expected[v]);
    }
}

/* Combines the pair in three parts, like three ranks that hold one part each. */
static void pair_combine(struct pair *pair)
{
    size_t bytes = hvd_dtype_bytes(pair->dtype);
    int64_t cuts[4] = {0, pair->count / 5, pair->count / 2, pair->count};
    struct hvd_adasum_sums sums = {0};

    for (int p = 0; p < 3; p++) {
        size_t at = (size_t)cuts[p] * bytes;
        struct hvd_adasum_sums part = hvd_adasum_measure(
            pair->dtype, (char *)pair->array[0] + at, (char *)pair->array[1] + at,
            (size_t)(cuts[p + 1] - cuts[p]));

        sums.dot += part.dot;
        sums.left += part.left;
        sums.right += part.right;
    }
    for (int p = 0; p < 3; p++) {
        size_t at = (size_t)cuts[p] * bytes;

        hvd_adasum_combine(pair->dtype, &sums, (char *)pair->array[0] + at,
                           (char *)pair->array[1] + at, (size_t)(cuts[p + 1] - cuts[p]));
    }
}

static bool equals_reference(enum hvd_dtype dtype, int64_t count,
                             double (*value)(int vector, int64_t index))
{
    struct pair pair = pair_make(dtype, count, value);
    bool is_good = true;

    pair_combine(&pair);
    adasum_reference_combine(&pair.expected[0], &pair.expected[1]);
    for (int64_t i = 0; i < count; i++) {
        double got = value_load(dtype, pair.array[0], i);

        if (!adasum_reference_is_close(dtype, 2, &pair.expected[0], i, got)) {
            tap_note("element %lld of %lld is %.17g, expected %.17g", (long long)i,
                     (long long)count, got, pair.expected[0].value[i]);
            is_good = false;
            break;
        }
    }
    pair_finish(&pair);
    return is_good;
}

static double of_other_size(int vector, int64_t index)
{
    return random_value(vector, index) * (vector == 0 ? 0x1p-20 : 0x1p10);
}

static double nearly_parallel(int vector, int64_t index)
{
    return random_value(0, index) + random_value(vector, index) / 256;
}

static void test_reference(void)
{
    static const struct {
        const char *name;
        double (*value)(int vector, int64_t index);
    } kinds[] = {{"random", random_value},
                 {"very short and very long", of_other_size},
                 {"nearly parallel", nearly_parallel}};

    for (int k = 0; k < 3; k++) {
        for (int d = 2; d < DTYPES; d++) {
            bool is_good = true;

            for (int i = 0; i < COUNTS; i++) {
                is_good =
                    is_good && equals_reference(dtypes[d], counts[i], kinds[k].value);
            }
            tap_ok(is_good, "%s vectors of %s are combined as by the reference",
                   kinds[k].name, hvd_dtype_name(dtypes[d]));
        }
    }
}

/* Whether each element of the combined pair is exactly sum * (left + right). */
static bool is_exact(double (*value)(int vector, int64_t index), double sum)
{
    bool is_good = true;

    for (int d = 2; d < DTYPES; d++) {
        for (int i = 0; i < COUNTS; i++) {
            struct pair pair = pair_make(dtypes[d], counts[i], value);

            pair_combine(&pair);
            for (int64_t k = 0; k < counts[i]; k++) {
                is_good = is_good && value_load(dtypes[d], pair.array[0], k) ==
                                         sum * (value(0, k) + value(1, k));
            }
            pair_finish(&pair);
        }
    }
    return is_good;
}

static double equal(int vector, int64_t index)
{
    (void)vector;
    return random_value(0, index);
}

static double orthogonal(int vector, int64_t index)
{
    return index % 2 == vector ? random_value(vector, index) : 0;
}

static double left_is_zero(int vector, int64_t index)
{
    return vector == 0 ? 0 : random_value(vector, index);
}

static double right_is_zero(int vector, int64_t index)
{
    return vector == 1 ? 0 : random_value(vector, index);
}

static double all_zero(int vector, int64_t index)
{
    (void)vector;
    (void)index;
    return 0;
}

static double opposite(int vector, int64_t index)
{
    return vector == 0 ? random_value(0, index) : -random_value(0, index);
}

static void test_exact(void)
{
    tap_ok(is_exact(equal, 0.5), "equal vectors give exactly the vector");
    tap_ok(is_exact(orthogonal, 1), "orthogonal vectors give exactly the sum");
    tap_ok(is_exact(left_is_zero, 1) && is_exact(right_is_zero, 1),
           "a vector and zero give the vector");
    tap_ok(is_exact(all_zero, 1), "zero and zero give zero");
    tap_ok(is_exact(opposite, 1), "opposite vectors give zero");
}

static void test_not_finite(void)
{
    bool is_good = true;

    for (int k = 0; k < 2; k++) {
        float left[20], right[20];
        struct hvd_adasum_sums sums;

        for (int i = 0; i < 20; i++) {
            left[i] = (float)random_value(0, i);
            right[i] = 1;
        }
        left[13] = k == 0 ? NAN : INFINITY;
        sums = hvd_adasum_measure(HVD_FLOAT32, left, right, 20);
        hvd_adasum_combine(HVD_FLOAT32, &sums, left, right, 20);
        for (int i = 0; i < 20; i++) {
            is_good = is_good && isnan(left[i]);
        }
    }
    tap_ok(is_good, "a NaN or an infinity makes the whole result NaN");
}

static void test_place(void)
{
    static float left[MOST + 16], right[MOST + 16];
    struct hvd_adasum_sums first = {0};
    bool is_good = true;

    for (size_t shift = 0; shift < 16; shift++) {
        struct hvd_adasum_sums sums;

        for (int64_t i = 0; i < MOST; i++) {
            left[shift + (size_t)i] = (float)random_value(0, i) / 3;
            right[shift + (size_t)i] = (float)random_value(1, i) / 7;
        }
        sums = hvd_adasum_measure(HVD_FLOAT32, left + shift, right + shift, MOST);
        first = shift == 0 ? sums : first;
        is_good = is_good && memcmp(&first, &sums, sizeof(sums)) == 0;
    }
    tap_ok(is_good, "sums have the same bits for any alignment");
}

int main(void)
{
    seed = tap_seed((unsigned)time(NULL));
    test_check();
    test_load_and_store();
    test_single_rounding();
    test_reference();
    test_exact();
    test_not_finite();
    test_place();
    return tap_done();
}
