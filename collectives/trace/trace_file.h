/* SPDX-License-Identifier: Apache-2.0 */
/* A growing file that is a complete JSON array at every moment from its first page on,
 * even if the process is killed.
 *
 *   [ {...}, {...}, {...}      (room: spaces)      ]      (when it grows: spaces)
 *
 * If the process is killed, the kernel may cut a write short, but only between two pages.
 * Therefore events are written into the room before the bracket, and each write stays
 * within one page: after a cut, the rest is spaces. When the room is used up, spaces are
 * appended behind the bracket, which does not change the array; then the bracket moves to
 * the end (trace_bracket.h). The room is 1 MiB at first; later it doubles the file, by at
 * most 64 MiB at a time. close moves the bracket behind the events and cuts off the room.
 *
 * If the disk is full, growing fails, and the array stays as it is. Threads: one at a
 * time. */
#ifndef HVD_TRACE_FILE_H
#define HVD_TRACE_FILE_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_trace_file;

/* Replaces the file at path by an empty array. The file must support writes at any
 * offset, which a pipe does not. A process that still writes to the older file does no
 * harm. Returns 0, HVD_ERR_SYS with the reason, or HVD_ERR_NOMEM. */
int hvd_trace_file_open(const char *path, struct hvd_trace_file **out,
                        struct hvd_error *err);

/* Adds lines as elements of the array; each is a JSON value of at most
 * HVD_TRACE_TEXT_BYTES bytes and '\n'. They may stay in memory until flush. The first
 * failure is returned, with the reason in err; after that, both functions do nothing and
 * return 0. */
int hvd_trace_file_add(struct hvd_trace_file *file, const char *lines, size_t bytes,
                       struct hvd_error *err);
int hvd_trace_file_flush(struct hvd_trace_file *file, struct hvd_error *err);

/* Flushes the file, cuts off the room, and closes it. NULL is fine. */
void hvd_trace_file_close(struct hvd_trace_file *file);

#endif
