/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the stack of the main thread of this process as a text, although that thread
 * sleeps, computes or hangs. */
#ifndef HVD_STACK_H
#define HVD_STACK_H

#include <stddef.h>

/* Writes a line for each call, the newest first: those of Python, if the process runs
 * Python and has called hvd.init(),
 *
 *   File "/home/user/train.py", line 7 in read_data
 *
 * then those of C, down to Python's interpreter if there are lines of Python:
 *
 *   clock_nanosleep in libc.so.6
 *
 * Leaves out what does not fit. The text may be empty. Takes milliseconds, and longer if
 * a library lies in a file system that is slow.
 * Threads: one at a time, not the main thread; signals must be blocked. */
void hvd_stack_read(char *text, size_t bytes);

#endif
