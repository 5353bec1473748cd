/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges of time for NVIDIA's profilers (NVTX), as Horovod marks them:
 *
 *   HorovodOps                  HorovodAllreduce, HorovodGroupedAllreduce, ...: a request, from its
 *                               submission to its end; the payload is its bytes
 *   HorovodTimeline             what is in a timeline too, while one is written: NEGOTIATE_ALLREDUCE
 *                               NAME, ALLREDUCE NAME
 *   HorovodTimelineActivities   and what is in these: QUEUE NAME, ...
 *
 * A profiler names its library in NVTX_INJECTION64_PATH and is spoken to as NVTX's
 * headers do it (version 3), so neither they nor a library of NVTX are needed. Without a
 * profiler a range costs one look at a flag. Any thread. */
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

/* Whether ranges are wanted (HOROVOD_DISABLE_NVTX_RANGES). Looks for a profiler the first
 * time that they are; until then there are none. */
void hvd_ranges_open(bool is_wanted);

/* Whether there are ranges: what is made for one can be left out else. */
bool hvd_ranges_are_on(void);

/* A range begins; what, a space, and name unless it is NULL. bytes: its payload, -1:
 * none. Returns what ends it, on any thread; 0: there is no range, which may be ended,
 * too. */
uint64_t hvd_range_begin(enum hvd_range_domain domain, const char *what, const char *name,
                         int64_t bytes);
void hvd_range_end(enum hvd_range_domain domain, uint64_t range);

/* One line on whether there are ranges, and where they go, or why not: "NVTX ranges:
 * ...\n" in at most size bytes. Loads the profiler's library. Returns as snprintf. */
int hvd_ranges_describe(char *text, size_t size);

#endif
