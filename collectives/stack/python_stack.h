/* SPDX-License-Identifier: Apache-2.0 */
/* The Python stack of the main thread of this process.
 *
 * Python's faulthandler writes it to a memory file when a signal comes
 * (horovod/common/stacks.py), without the GIL. If the main thread sleeps, the calling
 * thread sends the signal to itself, so that no system call of the main thread returns
 * early; else the main thread gets it, because its stack must not change meanwhile. A
 * main thread that wakes up in these microseconds is a risk that CPython takes, too: its
 * dump_traceback_later reads the stacks of threads that run. */
#ifndef HVD_STACK_PYTHON_STACK_H
#define HVD_STACK_PYTHON_STACK_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the text, a line for each call, the newest first; leaves out lines that do not
 * fit. The text is empty if there is no Python with hvd's handler, or if the main thread
 * does not take the signal in time. Threads: one at a time, not the main thread. */
void hvd_stack_python_read(bool main_sleeps, char *text, size_t bytes);

#endif
