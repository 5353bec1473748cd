/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the bracket that closes a JSON file, so that the file has exactly one bracket at
 * every moment, even if the process is killed: two bytes, however far apart, change in
 * one step.
 *
 * A write of many pages can be cut short by kill -9, and between two writes the process
 * can be killed. But the kernel copies a read of two bytes into two places of memory
 * without checking for signals in between, and this memory can be the mapped file. Where
 * the file has been cut or the disk is full, the read fails, while a store would raise
 * SIGBUS. */
#ifndef HVD_TRACE_BRACKET_H
#define HVD_TRACE_BRACKET_H

#include <stdint.h>

/* Puts ']' at the byte `to` and ' ' at the byte `from` of a file that is open for reading
 * and writing; both bytes must be in the file. If the file cannot be mapped, two writes
 * are used. Returns 0, or HVD_ERR_SYS with errno set: then the bracket is still at
 * `from`, and perhaps also at `to`. */
int hvd_trace_move_bracket(int fd, int64_t from, int64_t to);

#endif
