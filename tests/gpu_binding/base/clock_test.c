/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that hvd_clock_ns and hvd_clock_ms read the monotonic clock. */
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

    tap_ok(before <= ns && ns <= after, "hvd_clock_ns reads the monotonic clock");
    tap_ok(ns / ns_of_ms <= ms && ms <= after / ns_of_ms,
           "hvd_clock_ms reads the same clock");
    return tap_done();
}
