/* SPDX-License-Identifier: Apache-2.0 */
/* Time for deadlines and durations. */
#ifndef HVD_CLOCK_H
#define HVD_CLOCK_H

#include <stdint.h>

/* Return the time of a clock that never jumps, in milliseconds and in nanoseconds. */
int64_t hvd_clock_ms(void);
int64_t hvd_clock_ns(void);

#endif
