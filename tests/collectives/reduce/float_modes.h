/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point environments that a program may have set in a thread. */
#ifndef HVD_TEST_FLOAT_MODES_H
#define HVD_TEST_FLOAT_MODES_H

#include <stdbool.h>

/* Return the number of modes and the name of one. Mode 0 is that of the start of the
 * program; the others are each rounding direction, traps for all exceptions, and the
 * modes of this CPU that treat subnormal numbers as zero. */
int float_mode_count(void);
const char *float_mode_name(int mode);

/* Sets the mode of the calling thread, and raises some exception flags. Until
 * float_mode_end the thread must do no arithmetic, which may trap. */
void float_mode_begin(int mode);
void float_mode_end(void); /* restores the mode of the start of the program */

/* Whether the thread's environment is as float_mode_begin set it. */
bool float_mode_is_kept(int mode);

#endif
