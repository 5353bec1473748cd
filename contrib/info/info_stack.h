/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a Python program that has called hvd.init() for its stack. */
#ifndef HVD_INFO_STACK_H
#define HVD_INFO_STACK_H

#include <stddef.h>
#include <sys/types.h>

/* Writes the stack of the main thread, the newest call first, a line for each call. Lines
 * that do not fit are left out. The text is empty if the process offers no stack
 * (horovod/common/stacks.py), is stopped, or does not answer in time. */
void hvd_info_stack_read(pid_t pid, char *text, size_t bytes);

#endif
