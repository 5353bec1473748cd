/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a computed NaN always has the same bits, whatever the inputs and the CPU. */
#include <string.h>

#include "collectives/reduce/reduce_kernels.h"
#include "tests/tap.h"

enum {
    COUNT = 37, /* not a whole number of vectors */
    INPUTS = 6,
};

struct format {
    enum hvd_dtype dtype;
    uint64_t one;
    uint64_t infinity;
    uint64_t sign;
    uint64_t plain;
};

static const struct format formats[] = {
    {HVD_FLOAT16, 0x3c00, 0x7c00, 0x8000, 0x7e00},
    {HVD_BFLOAT16, 0x3f80, 0x7f80, 0x8000, 0x7fc0},
    {HVD_FLOAT32, 0x3f800000, 0x7f800000, 0x80000000, 0x7fc00000},
    {HVD_FLOAT64, 0x3ff0000000000000, 0x7ff0000000000000, 0x8000000000000000,
     0x7ff8000000000000},
};

static const enum hvd_op ops[] = {HVD_SUM, HVD_MIN, HVD_MAX, HVD_PRODUCT};

static void repeat(const struct format *format, uint64_t element, void *array)
{
    size_t bytes = hvd_dtype_bytes(format->dtype);

    for (size_t i = 0; i < COUNT; i++) {
        memcpy((char *)array + i * bytes, &element, bytes);
    }
}

static bool is_plain(const struct format *format, const void *array)
{
    double expected[COUNT] = {0};

    repeat(format, format->plain, expected);
    return memcmp(array, expected, COUNT * hvd_dtype_bytes(format->dtype)) == 0;
}

/* Whether the result of each op is the plain NaN (quiet, without sign and payload) for a
 * NaN and a number, in both orders, and for NaN of different signs and payloads. */
static bool combines_to_plain(const struct format *format,
                              const struct hvd_kernels *kernels)
{
    hvd_combine_kernel *const *combine =
        kernels->widen != NULL ? kernels->halves : kernels->combine;
    uint64_t quiet = format->plain | format->sign | 5;
    uint64_t signaling = format->infinity | 3;
    uint64_t pairs[INPUTS][2] = {{quiet, format->one},     {format->one, quiet},
                                 {quiet, signaling},       {signaling, quiet},
                                 {signaling, format->one}, {format->infinity, signaling}};
    double a[COUNT];
    double b[COUNT];

    for (int i = 0; i < INPUTS; i++) {
        for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++) {
            repeat(format, pairs[i][0], a);
            repeat(format, pairs[i][1], b);
            combine[ops[op]](a, a, b, COUNT);
            if (!is_plain(format, a)) {
                tap_note("op %d of inputs %d", (int)ops[op], i);
                return false;
            }
        }
    }
    return true;
}

static bool makes_plain(const struct format *format, const struct hvd_kernels *kernels)
{
    hvd_scale_kernel *scale =
        kernels->widen != NULL ? kernels->scale_half : kernels->scale;
    double a[COUNT];
    double b[COUNT];

    repeat(format, format->infinity, a);
    repeat(format, format->infinity | format->sign, b);
    kernels->sum_scaled(0.5, a, b, b, COUNT);
    scale(0.0, a, a, COUNT);
    return is_plain(format, a) && is_plain(format, b);
}

/* Whether a sum of three sources is the plain NaN if one source is NaN. */
static bool sums_to_plain(const struct format *format, const struct hvd_kernels *kernels)
{
    double a[COUNT];
    double b[COUNT];
    const void *const sources[] = {a, b, a};

    if (kernels->sum_all == NULL) {
        return true;
    }
    repeat(format, format->one, a);
    repeat(format, format->plain | format->sign | 5, b);
    kernels->sum_all((struct hvd_sum_factors){1.0, 1.0}, sources, 3, COUNT, b);
    return is_plain(format, b);
}

static bool scales_to_plain(const struct format *format,
                            const struct hvd_kernels *kernels)
{
    hvd_scale_kernel *scale =
        kernels->widen != NULL ? kernels->scale_half : kernels->scale;
    double a[COUNT];

    repeat(format, format->plain | format->sign | 1, a);
    scale(0.5, a, a, COUNT);
    return is_plain(format, a);
}

int main(void)
{
    for (int level = 0; level <= (int)hvd_kernel_level(); level++) {
        const char *name = hvd_kernel_level_name((enum hvd_kernel_level)level);

        for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
            const struct format *format = &formats[i];
            const struct hvd_kernels *kernels =
                hvd_kernels_at((enum hvd_kernel_level)level, format->dtype);
            const char *dtype = hvd_dtype_name(format->dtype);

            tap_ok(combines_to_plain(format, kernels),
                   "%s: ops on a NaN and a number of %s give the plain NaN", name, dtype);
            tap_ok(makes_plain(format, kernels),
                   "%s: NaN computed from infinities of %s is plain", name, dtype);
            tap_ok(sums_to_plain(format, kernels),
                   "%s: a sum with one NaN among three %s is the plain NaN", name, dtype);
            tap_ok(scales_to_plain(format, kernels), "%s: a scaled NaN of %s is plain",
                   name, dtype);
        }
    }
    return tap_done();
}
