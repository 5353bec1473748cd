/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of deadlines is the one that never jumps, in both units. */
#include "gpu_binding/base/clock.h"

#include <time.h>

#include "tests/tap.h"

static const int64_t ns_of_s = 1000000000;
static const int64_t ns_of_ms = 1000000;

static int64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * ns_of_s + now.tv_nsec;
}

int main(void)
{
    int64_t before = monotonic_ns();
    int64_t ns = hvd_clock_ns();
    int64_t ms = hvd_clock_ms();
    int64_t after = monotonic_ns();

    tap_ok(before <= ns && ns <= after, "nanoseconds of the monotonic clock");
    tap_ok(ns / ns_of_ms <= ms && ms <= after / ns_of_ms, "milliseconds of the same");
    return tap_done();
}
