/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the bracket that closes a JSON file to another place, so that the file has one
 * bracket at every moment, also if the process is killed: two bytes, however far apart,
 * change in one go.
 *
 * A write of many pages can be cut short by kill -9, and two writes are two moments. But
 * the kernel copies a read of two bytes into two places of memory without looking for
 * signals in between, and the memory can be the file, mapped. Unlike a store of our own
 * it fails instead of raising SIGBUS where the file is cut or the disk is full. */
#ifndef HVD_TRACE_BRACKET_H
#define HVD_TRACE_BRACKET_H

#include <stdint.h>

/* Puts ']' at the byte `to` and ' ' at the byte `from` of a file open for reading and
 * writing; both bytes are in the file. Where files cannot be mapped it takes two writes.
 * Returns 0, or HVD_ERR_SYS with errno: then the bracket is still at `from`, and perhaps
 * at `to` as well. */
int hvd_trace_move_bracket(int fd, int64_t from, int64_t to);

#endif
