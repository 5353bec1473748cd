/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may have made of the floating-point environment of a thread. */
#ifndef HVD_TEST_FLOAT_MODES_H
#define HVD_TEST_FLOAT_MODES_H

#include <stdbool.h>

/* Modes from 0 on: as at the start of the program, each way of rounding, all exceptions
 * trap, and those of this CPU that take subnormal numbers for zero. */
int float_mode_count(void);
const char *float_mode_name(int mode);

/* The calling thread has this mode from now on, and some exception flags raised. In it,
 * no arithmetic until float_mode_end: that may trap. */
void float_mode_begin(int mode);
void float_mode_end(void); /* as at the start of the program */

/* Whether the thread has all of what float_mode_begin gave it. */
bool float_mode_is_kept(int mode);

#endif
