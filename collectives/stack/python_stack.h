/* SPDX-License-Identifier: Apache-2.0 */
/* The Python stack of the main thread of this process.
 *
 * Python's faulthandler writes it to a memory file (horovod/common/stacks.py), without
 * the GIL, when the main thread gets a signal. The signal goes to that thread even if it
 * sleeps, because a stack must not change while it is read. Python repeats system calls
 * that a signal interrupts; in libraries, SA_RESTART covers all but poll and its kin. */
#ifndef HVD_STACK_PYTHON_STACK_H
#define HVD_STACK_PYTHON_STACK_H

#include <stddef.h>

/* Writes the text, a line for each call, the newest first; leaves out lines that do not
 * fit. The text is empty if there is no Python with hvd's handler, or if the main thread
 * does not take the signal in time. Threads: one at a time, not the main thread. */
void hvd_stack_python_read(char *text, size_t bytes);

#endif
