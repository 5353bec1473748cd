/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges of time for NVIDIA's profilers (NVTX), as Horovod marks them:
 *
 *   HorovodOps                  HorovodAllreduce, HorovodGroupedAllreduce, ...: a
 *                               request, from its submission to its end; the payload is
 *                               its bytes
 *   HorovodTimeline             the activities of a timeline, while one is recorded:
 *                               NEGOTIATE_ALLREDUCE NAME, ALLREDUCE NAME
 *   HorovodTimelineActivities   the activities within these: QUEUE NAME, ...
 *
 * A profiler names its library in NVTX_INJECTION64_PATH. The library is used in the way
 * of NVTX's headers (version 3), so neither these headers nor an NVTX library is needed.
 * Without a profiler, a range costs a look at a flag. Any thread may call these
 * functions. */
#ifndef HVD_RANGES_H
#define HVD_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hvd_range_domain {
    HVD_RANGES_OPS,
    HVD_RANGES_TIMELINE,
    HVD_RANGES_ACTIVITIES,
    HVD_RANGE_DOMAINS
};

/* Turns ranges on or off (HOROVOD_DISABLE_NVTX_RANGES). Looks for a profiler when they
 * are turned on for the first time. */
void hvd_ranges_open(bool is_wanted);

/* Whether ranges are on; if not, callers can skip preparations. */
bool hvd_ranges_are_on(void);

/* Begins a range called `what`, or `what name` if name is not NULL. bytes: its payload;
 * -1: none. Returns a number for hvd_range_end, which any thread may call; 0: there is no
 * range, and ending it does nothing. */
uint64_t hvd_range_begin(enum hvd_range_domain domain, const char *what, const char *name,
                         int64_t bytes);
void hvd_range_end(enum hvd_range_domain domain, uint64_t range);

/* Writes one line on whether there are ranges, and where they go or why there are none:
 * "NVTX ranges: ...\n", in at most size bytes. Loads the profiler's library. Returns as
 * snprintf does. */
int hvd_ranges_describe(char *text, size_t size);

#endif
