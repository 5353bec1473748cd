/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the inner loops of every instruction set that this CPU has with the portable
 * ones, bit for bit. */
#include <math.h>
#include <string.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce_kernels.h"
#include "tests/collectives/reduce/random_bits.h"
#include "tests/tap.h"

enum verb {
    COMBINE,
    HALVES,
    ADD_HALF,
    SCALE,
    SCALE_HALF,
    AVERAGE,
    SUM_SCALED,
    SUM_ALL,
    WIDEN,
    WIDEN_SCALED,
    NARROW,
    VERB_COUNT,
};

enum {
    PATTERNS = 65536,
    MOST_BYTES = PATTERNS * 4,
    SHORT = 100, /* elements of an array for which all lengths are tried */
    SLACK = 16, /* elements before and after the array, which must not change */
    MOST_SOURCES = 9,
};

struct call {
    const struct hvd_kernels *kernels;
    enum verb verb;
    enum hvd_op op;
    double factor;
    double before; /* factor of each source of SUM_ALL */
    uint32_t divisor; /* divisor of AVERAGE */
    int source_count; /* number of sources of SUM_ALL */
};

static _Alignas(64) char left[MOST_BYTES];
static _Alignas(64) char right[MOST_BYTES];
static _Alignas(64) char expected[MOST_BYTES];
static _Alignas(64) char found[MOST_BYTES];

static bool is_half(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16;
}

static bool is_float(enum hvd_dtype dtype)
{
    return is_half(dtype) || dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
}

static int exponent_bits(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 ? 5 : dtype == HVD_FLOAT64 ? 11 : 8;
}

/* Returns zeros, subnormals, infinities, NaN with any payload, numbers of similar size,
 * or random bits. Half of the float32 numbers lie at or next to the middle of two 16-bit
 * floats. */
static uint64_t random_float(enum hvd_dtype dtype)
{
    int fraction_bits = 8 * (int)hvd_dtype_bytes(dtype) - 1 - exponent_bits(dtype);
    uint64_t any = random_bits() >> 3;
    uint64_t sign = (any & 1) << (fraction_bits + exponent_bits(dtype));
    uint64_t fraction = (any >> 8) & ((UINT64_C(1) << fraction_bits) - 1);
    uint64_t bias = (UINT64_C(1) << (exponent_bits(dtype) - 1)) - 1;
    uint64_t infinity = (2 * bias + 1) << fraction_bits;

    if (dtype == HVD_FLOAT32 && random_bits() % 2 == 0) {
        uint64_t step = any % 4 < 2 ? 0x8000 : 0x1000;

        fraction = (fraction & ~(2 * step - 1)) + step + random_bits() % 3 - 1;
    }
    switch ((random_bits() >> 20) % 8) {
    case 0:
        return sign;
    case 1:
        return sign | fraction;
    case 2:
        return sign | infinity;
    case 3:
        return sign | infinity | fraction;
    case 4:
        return random_bits();
    default:
        return sign | (bias + any / 16 % 12) << fraction_bits | fraction;
    }
}

static void fill(enum hvd_dtype dtype, void *array, size_t count)
{
    size_t bytes = hvd_dtype_bytes(dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t element = is_float(dtype) ? random_float(dtype) : random_bits();

        memcpy((char *)array + i * bytes, &element, bytes);
    }
}

static enum hvd_dtype type_of_left(enum verb verb, enum hvd_dtype dtype)
{
    bool is_partial =
        verb == COMBINE || verb == ADD_HALF || verb == SCALE || verb == NARROW;

    return is_half(dtype) && is_partial ? HVD_FLOAT32 : dtype;
}

static enum hvd_dtype type_of_right(enum verb verb, enum hvd_dtype dtype)
{
    return is_half(dtype) && verb == COMBINE ? HVD_FLOAT32 : dtype;
}

static enum hvd_dtype type_of_out(enum verb verb, enum hvd_dtype dtype)
{
    bool is_partial = verb == COMBINE || verb == ADD_HALF || verb == SCALE ||
                      verb == WIDEN || verb == WIDEN_SCALED;

    return is_half(dtype) && is_partial ? HVD_FLOAT32 : dtype;
}

static bool has(const struct hvd_kernels *kernels, enum verb verb)
{
    switch (verb) {
    case COMBINE:
        return true;
    case SCALE:
        return kernels->scale != NULL;
    case AVERAGE:
        return kernels->average != NULL;
    case SUM_SCALED:
        return kernels->sum_scaled != NULL;
    case SUM_ALL:
        return kernels->sum_all != NULL;
    default:
        return kernels->widen != NULL;
    }
}

/* Sums a, b and, if the call has more sources, the arrays `right` and `left` in turn. */
static void sum_all(const struct call *call, const void *a, const void *b, void *out,
                    size_t count)
{
    const void *sources[MOST_SOURCES] = {a, b};

    for (int i = 2; i < call->source_count; i++) {
        sources[i] = i % 2 == 0 ? right : left;
    }
    call->kernels->sum_all((struct hvd_sum_factors){call->before, call->factor}, sources,
                           call->source_count, count, out);
}

static void run(const struct call *call, const void *a, const void *b, void *out,
                size_t count)
{
    const struct hvd_kernels *kernels = call->kernels;

    switch (call->verb) {
    case COMBINE:
        kernels->combine[call->op](out, a, b, count);
        break;
    case HALVES:
        kernels->halves[call->op](out, a, b, count);
        break;
    case ADD_HALF:
        kernels->add_half[call->op](out, a, b, count);
        break;
    case SCALE:
        kernels->scale(call->factor, a, out, count);
        break;
    case SCALE_HALF:
        kernels->scale_half(call->factor, a, out, count);
        break;
    case AVERAGE:
        kernels->average(call->factor, call->divisor, a, out, count);
        break;
    case SUM_SCALED:
        kernels->sum_scaled(call->factor, a, b, out, count);
        break;
    case SUM_ALL:
        sum_all(call, a, b, out, count);
        break;
    case WIDEN:
        kernels->widen(a, out, count);
        break;
    case WIDEN_SCALED:
        kernels->widen_scaled(call->factor, a, out, count);
        break;
    default:
        kernels->narrow(a, out, count);
    }
}

/* Whether the result is as expected, and nothing was written around the array. */
static bool same(const struct call *call, enum hvd_dtype dtype, size_t first,
                 size_t count)
{
    size_t bytes = hvd_dtype_bytes(type_of_out(call->verb, dtype));

    for (size_t i = 0; i < MOST_BYTES / bytes && i < first + count + SLACK; i++) {
        uint64_t wanted = 0;
        uint64_t got = 0;

        memcpy(&wanted, expected + i * bytes, bytes);
        memcpy(&got, found + i * bytes, bytes);
        if (wanted != got) {
            tap_note(
                "verb %d, op %d, factor %g, %zu elements: 0x%llx instead of 0x%llx at "
                "%zd",
                (int)call->verb, (int)call->op, call->factor, count,
                (unsigned long long)got, (unsigned long long)wanted,
                (ssize_t)i - (ssize_t)first);
            return false;
        }
    }
    return true;
}

/* Compares a kernel with the portable one on arrays of random alignment, sometimes in
 * place if the types allow it. */
static bool agrees_once(const struct call *call, enum hvd_dtype dtype, size_t count)
{
    enum hvd_dtype types[] = {type_of_left(call->verb, dtype),
                              type_of_right(call->verb, dtype),
                              type_of_out(call->verb, dtype)};
    size_t first = random_bits() / 8 % SLACK;
    const char *a = left + random_bits() / 8 % SLACK * hvd_dtype_bytes(types[0]);
    const char *b = right + random_bits() / 8 % SLACK * hvd_dtype_bytes(types[1]);
    size_t offset = first * hvd_dtype_bytes(types[2]);
    int place = (int)(random_bits() / 8 % 4);
    struct call portable = *call;

    portable.kernels = hvd_kernels_at(HVD_LEVEL_PORTABLE, dtype);
    fill(types[0], left, count + SLACK);
    fill(types[1], right, count + SLACK);
    fill(types[2], expected, count + 2 * SLACK);
    if (place < 2 && types[place] == types[2]) {
        memcpy(expected + offset, place == 0 ? a : b, count * hvd_dtype_bytes(types[2]));
    }
    memcpy(found, expected, (count + 2 * SLACK) * hvd_dtype_bytes(types[2]));
    a = place == 0 && types[0] == types[2] ? expected + offset : a;
    b = place == 1 && types[1] == types[2] ? expected + offset : b;
    run(call, a == expected + offset ? found + offset : a,
        b == expected + offset ? found + offset : b, found + offset, count);
    run(&portable, a, b, expected + offset, count);
    return same(call, dtype, first, count);
}

static uint32_t random_divisor(void)
{
    uint32_t any = (uint32_t)(random_bits() >> 33) >> random_bits() / 8 % 31;

    return any < 2 ? 2 : any;
}

static bool agrees(const struct hvd_kernels *kernels, enum hvd_dtype dtype,
                   enum verb verb)
{
    static const enum hvd_op ops[] = {HVD_SUM,     HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                      HVD_PRODUCT, HVD_BAND,    HVD_BOR, HVD_BXOR};
    const size_t op_count = kernels->combine[HVD_BAND] != NULL ? 8 : 5;
    static const double factors[] = {1.0 / 3, 0.5, -1.5,     1e-7, 1e6, 1e-40,
                                     1e39,    0.0, INFINITY, NAN,  1.0};
    struct call call = {.kernels = kernels, .verb = verb, .before = 1.0};

    for (size_t count = 0; count <= SHORT; count++) {
        for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
            call.factor = factors[i];
            call.op = ops[i % op_count];
            call.divisor = random_divisor();
            call.before = random_bits() / 8 % 2 == 0 ? 1.0 : factors[(i + count) % 10];
            call.source_count = 2 + (int)(random_bits() / 8 % (MOST_SOURCES - 1));
            if (!agrees_once(&call, dtype, count)) {
                return false;
            }
        }
    }
    call.factor = verb == AVERAGE ? 1.0 : 0.25;
    call.op = HVD_SUM;
    return agrees_once(&call, dtype, 5000);
}

/* Compares two conversions with the portable ones: of every 16-bit pattern to float, and
 * of floats to 16 bits. The floats have every upper half, with lower halves at and next
 * to the points where rounding changes. */
static bool converts_all(const struct hvd_kernels *kernels, enum hvd_dtype dtype)
{
    static const uint32_t lower[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x2fff,
                                     0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xcfff,
                                     0xd000, 0xd001, 0xefff, 0xf000, 0xffff};
    const struct hvd_kernels *portable = hvd_kernels_at(HVD_LEVEL_PORTABLE, dtype);
    struct call call = {.kernels = kernels, .verb = WIDEN};

    for (uint32_t i = 0; i < PATTERNS; i++) {
        ((uint16_t *)left)[i] = (uint16_t)i;
    }
    portable->widen(left, expected, PATTERNS);
    kernels->widen(left, found, PATTERNS);
    if (!same(&call, dtype, 0, PATTERNS)) {
        return false;
    }
    call.verb = NARROW;
    for (size_t k = 0; k < sizeof(lower) / sizeof(lower[0]); k++) {
        for (uint32_t i = 0; i < PATTERNS; i++) {
            ((uint32_t *)left)[i] = i << 16 | lower[k];
        }
        portable->narrow(left, expected, PATTERNS);
        kernels->narrow(left, found, PATTERNS);
        if (!same(&call, dtype, 0, PATTERNS)) {
            return false;
        }
    }
    return true;
}

/* Does the same in a mode that treats subnormal floats as zero. */
static bool converts_all_flushing(const struct hvd_kernels *kernels, enum hvd_dtype dtype)
{
    bool is_same;
#ifdef __x86_64__
    unsigned before = _mm_getcsr();

    _mm_setcsr(before | 0x8040); /* FTZ and DAZ */
#endif
    is_same = converts_all(kernels, dtype);
#ifdef __x86_64__
    _mm_setcsr(before);
#endif
    return is_same;
}

static void try_level(enum hvd_kernel_level level, enum hvd_dtype dtype)
{
    static const char *const names[VERB_COUNT] = {[COMBINE] = "combine",
                                                  [HALVES] = "combine as 16 bits",
                                                  [ADD_HALF] = "add 16 bits",
                                                  [SCALE] = "scale",
                                                  [SCALE_HALF] = "scale as 16 bits",
                                                  [AVERAGE] = "average",
                                                  [SUM_SCALED] = "scaled sum",
                                                  [SUM_ALL] = "sum of many",
                                                  [WIDEN] = "widen",
                                                  [WIDEN_SCALED] = "widen and scale",
                                                  [NARROW] = "narrow"};
    const struct hvd_kernels *kernels = hvd_kernels_at(level, dtype);
    const char *where = hvd_kernel_level_name(level);

    for (int verb = 0; verb < VERB_COUNT; verb++) {
        if (has(kernels, (enum verb)verb)) {
            tap_ok(agrees(kernels, dtype, (enum verb)verb), "%s: %s of %s", where,
                   names[verb], hvd_dtype_name(dtype));
        }
    }
    if (is_half(dtype)) {
        tap_ok(converts_all(kernels, dtype) && converts_all_flushing(kernels, dtype),
               "%s: converts every %s as the portable level", where,
               hvd_dtype_name(dtype));
    }
}

/* Tests the names of the levels, by which benchmarks and logs describe a CPU. */
static void test_names(void)
{
    tap_ok(strcmp(hvd_kernel_level_name(HVD_LEVEL_PORTABLE), "portable") == 0,
           "the level without vectors is called portable");
#if defined(__x86_64__)
    tap_ok(strcmp(hvd_kernel_level_name(HVD_LEVEL_AVX2), "avx2") == 0 &&
               strcmp(hvd_kernel_level_name(HVD_LEVEL_AVX512), "avx512") == 0,
           "the other levels are named after their instructions");
#elif defined(__aarch64__)
    tap_ok(strcmp(hvd_kernel_level_name(HVD_LEVEL_NEON), "neon") == 0,
           "the other level is named after its instructions");
#endif
}

int main(void)
{
    random_begin();
    for (int level = HVD_LEVEL_PORTABLE + 1; level < HVD_LEVEL_COUNT; level++) {
        if (level > (int)hvd_kernel_level()) {
            tap_skip(hvd_kernel_level_name((enum hvd_kernel_level)level),
                     "this CPU does not have it");
            continue;
        }
        for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
            try_level((enum hvd_kernel_level)level, (enum hvd_dtype)dtype);
        }
    }
    test_names();
    return tap_done();
}
