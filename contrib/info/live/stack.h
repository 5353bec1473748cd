/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a rank for the stack of its main thread (collectives/trace/live_page.h). */
#ifndef HVD_INFO_STACK_H
#define HVD_INFO_STACK_H

#include <stddef.h>

/* page: the memory file of the rank, open for reading and writing. Writes the stack, one
 * line per call, the newest first. Leaves out lines that do not fit. The text is empty if
 * the rank is stopped, does not answer in time, or runs with HVD_STACKS=0. */
void hvd_info_stack_read(int page, char *text, size_t bytes);

#endif
