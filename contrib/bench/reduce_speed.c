/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the inner loops of reductions are: for each instruction set that this CPU has, arrays
 * of 64 KiB in the L2 cache, as a Markdown table. The instruction sets take turns. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/reduce/reduce_kernels.h"
#include "contrib/bench/median.h"

enum {
    ARRAY_BYTES = 65536,
    TURNS = 41,
    REPEATS = 40, /* of a kernel in a turn */
    MOST_SOURCES = 8,
};

enum verb {
    SUM,
    SUM_SCALED,
    SUM_3,
    SUM_8,
    PRESCALED,
    MIN,
    PRODUCT,
    SCALE,
    AVERAGE,
    WIDEN,
    NARROW,
    VERB_COUNT,
};

static const char *const names[VERB_COUNT] = {
    "sum",     "scaled sum", "sum of 3", "sum of 8", "prescaled sum", "min",
    "product", "scale",      "average",  "widen",    "narrow"};

static _Alignas(4096) char inputs[MOST_SOURCES][ARRAY_BYTES];
static char *const left = inputs[0];
static char *const right = inputs[1];
static _Alignas(4096) char out[2 * ARRAY_BYTES];
static _Alignas(4096) char partial[2 * ARRAY_BYTES];

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void combine(const struct hvd_kernels *kernels, enum hvd_op op, size_t count)
{
    hvd_combine_kernel *const *kernel =
        kernels->widen != NULL ? kernels->halves : kernels->combine;

    kernel[op](out, left, right, count);
}

static bool sum_all(const struct hvd_kernels *kernels, double before, int source_count,
                    size_t count)
{
    const void *sources[MOST_SOURCES];

    if (kernels->sum_all == NULL) {
        return false;
    }
    for (int source = 0; source < source_count; source++) {
        sources[source] = inputs[source];
    }
    kernels->sum_all((struct hvd_sum_factors){before, 1.0}, sources, source_count, count,
                     out);
    return true;
}

/* False if there is no such kernel. */
static bool run(const struct hvd_kernels *kernels, enum verb verb, size_t count)
{
    static const enum hvd_op ops[VERB_COUNT] = {
        [SUM] = HVD_SUM, [MIN] = HVD_MIN, [PRODUCT] = HVD_PRODUCT};
    hvd_scale_kernel *scale =
        kernels->widen != NULL ? kernels->scale_half : kernels->scale;

    switch (verb) {
    case SUM_SCALED:
        if (kernels->sum_scaled == NULL) {
            return false;
        }
        kernels->sum_scaled(0.5, left, right, out, count);
        return true;
    case SUM_3:
        return sum_all(kernels, 1.0, 3, count);
    case SUM_8:
        return sum_all(kernels, 1.0, MOST_SOURCES, count);
    case PRESCALED:
        return kernels->widen != NULL && sum_all(kernels, 0.5, 2, count);
    case SCALE:
        if (scale == NULL) {
            return false;
        }
        scale(0.5, left, out, count);
        return true;
    case AVERAGE:
        if (kernels->average == NULL) {
            return false;
        }
        kernels->average(1.0, 3, left, out, count);
        return true;
    case WIDEN:
    case NARROW:
        if (kernels->widen == NULL) {
            return false;
        }
        (verb == WIDEN ? kernels->widen : kernels->narrow)(verb == WIDEN ? left : partial,
                                                           out, count);
        return true;
    default:
        combine(kernels, ops[verb], count);
        return true;
    }
}

/* What a kernel reads and writes for an element. */
static double element_bytes(enum hvd_dtype dtype, enum verb verb)
{
    double bytes = (double)hvd_dtype_bytes(dtype);

    if (verb == WIDEN || verb == NARROW) {
        return bytes + sizeof(float);
    }
    if (verb == SUM_3 || verb == SUM_8) {
        return bytes * (verb == SUM_3 ? 4 : MOST_SOURCES + 1);
    }
    return verb == SCALE || verb == AVERAGE ? 2 * bytes : 3 * bytes;
}

/* A row: a verb of a dtype at every level. */
static void measure(enum hvd_dtype dtype, enum verb verb)
{
    double ns[HVD_LEVEL_COUNT][TURNS];
    size_t count = ARRAY_BYTES / hvd_dtype_bytes(dtype);
    int levels = (int)hvd_kernel_level() + 1;

    if (!run(hvd_kernels_of(dtype), verb, count)) {
        return;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (int level = 0; level < levels; level++) {
            const struct hvd_kernels *kernels =
                hvd_kernels_at((enum hvd_kernel_level)level, dtype);
            double begin;

            run(kernels, verb, count);
            begin = now_ns();
            for (int i = 0; i < REPEATS; i++) {
                run(kernels, verb, count);
            }
            ns[level][turn] = (now_ns() - begin) / REPEATS / (double)count;
        }
    }
    printf("| %s | %s |", hvd_dtype_name(dtype), names[verb]);
    for (int level = 0; level < levels; level++) {
        double each = median(ns[level], TURNS);

        printf(" %.2f / %.1f |", 1 / each, element_bytes(dtype, verb) / each);
    }
    printf("\n");
}

int main(void)
{
    int levels = (int)hvd_kernel_level() + 1;

    memset(inputs, 0x3c, sizeof(inputs)); /* about 1 in every float */
    memset(partial, 0x3c, sizeof(partial));
    printf("Elements per ns / GB/s read and written, medians of %d turns.\n\n| dtype | |",
           TURNS);
    for (int level = 0; level < levels; level++) {
        printf(" %s |", hvd_kernel_level_name((enum hvd_kernel_level)level));
    }
    printf("\n|---|---|");
    for (int level = 0; level < levels; level++) {
        printf("---|");
    }
    printf("\n");
    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        for (int verb = 0; verb < VERB_COUNT; verb++) {
            measure((enum hvd_dtype)dtype, (enum verb)verb);
        }
    }
    return 0;
}
