/* SPDX-License-Identifier: Apache-2.0 */
/* Gets the stack of a Python program that has called hvd.init(). */
#ifndef HVD_INFO_STACK_H
#define HVD_INFO_STACK_H

#include <stddef.h>
#include <sys/types.h>

/* Writes the stack of the main thread, one line per call, the newest first. Leaves out
 * lines that do not fit. The text is empty if the process has not set up its side
 * (horovod/common/stacks.py), is stopped, or does not answer in time. */
void hvd_info_stack_read(pid_t pid, char *text, size_t bytes);

#endif
