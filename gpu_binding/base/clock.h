/* SPDX-License-Identifier: Apache-2.0 */
/* Time for deadlines and durations. */
#ifndef HVD_CLOCK_H
#define HVD_CLOCK_H

#include <stdint.h>

/* Milliseconds of a clock that never jumps. */
int64_t hvd_clock_ms(void);
int64_t hvd_clock_ns(void); /* of the same clock */

#endif
