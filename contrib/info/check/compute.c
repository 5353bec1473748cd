/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/compute.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/check/node.h"
#include "contrib/info/check/values.h"
#include "gpu_binding/base/clock.h"

enum {
    LEAST = 32, /* bursts, even if the time is over */
    TERMS = 32,
    STEPS = 20000, /* about a millisecond */
    COPY_BYTES = 16 << 20, /* more than most caches hold for a core */
    PIECE_BYTES = 1 << 20, /* a burst, shorter than a time slice */
};

/* Returns the time of a burst of 2 * TERMS * STEPS operations. The result goes to *sink
 * so that the compiler keeps the loop. */
static int64_t time_burst(volatile double *sink)
{
    double terms[TERMS];
    int64_t start = hvd_clock_ns();

    for (int i = 0; i < TERMS; i++) {
        terms[i] = i;
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < TERMS; i++) {
            terms[i] = terms[i] * 0.999 + 0.5;
        }
    }
    for (int i = 0; i < TERMS; i++) {
        *sink += terms[i];
    }
    return hvd_clock_ns() - start;
}

static double measure_flops(int64_t until_ns)
{
    volatile double sink = 0;
    int bursts = 0;
    int64_t best = INT64_MAX;

    do {
        int64_t taken = time_burst(&sink);

        best = taken < best ? taken : best;
    } while (++bursts < LEAST || hvd_clock_ns() < until_ns);
    return 2.0 * TERMS * STEPS / (double)best;
}

static double measure_copies(int64_t until_ns)
{
    char *memory = malloc(2 * (size_t)COPY_BYTES);
    int64_t best = INT64_MAX;
    char last = 0;
    int copies = 0;

    if (memory == NULL) {
        return NAN;
    }
    memset(memory, 1, 2 * (size_t)COPY_BYTES);
    do {
        size_t at = (size_t)(copies++ % (COPY_BYTES / PIECE_BYTES)) * PIECE_BYTES;
        int64_t start = hvd_clock_ns();
        int64_t taken;

        memcpy(memory + at, memory + COPY_BYTES + at, PIECE_BYTES);
        /* the compiler must not leave the copy out */
        last = ((volatile char *)memory)[at];
        taken = hvd_clock_ns() - start;
        best = taken < best ? taken : best;
    } while (copies < LEAST || hvd_clock_ns() < until_ns);
    free(memory);
    return last == 0 ? NAN : (double)PIECE_BYTES / (double)best;
}

void hvd_info_compute(double budget_s, double *values)
{
    int64_t half = (int64_t)(budget_s * 0.5e9);
    int64_t start = hvd_clock_ns();

    values[HVD_INFO_GFLOPS] = measure_flops(start + half);
    values[HVD_INFO_CLOCK_PERCENT] = hvd_info_node_clock();
    values[HVD_INFO_COPY_GBS] = measure_copies(start + 2 * half);
}
