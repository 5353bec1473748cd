/* SPDX-License-Identifier: Apache-2.0 */
/* Time for deadlines and durations. */
#include "gpu_binding/base/clock.h"

#include <time.h>

int64_t hvd_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t hvd_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
