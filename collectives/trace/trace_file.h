/* SPDX-License-Identifier: Apache-2.0 */
/* A growing file that is one whole JSON array at every moment from its first page on,
 * whoever kills the process.
 *
 *   [ {...}, {...}, {...}      (room: spaces)      ]      (when it grows: spaces)
 *
 * The kernel can cut a write short between two pages only. So events are written into the
 * room before the bracket, each write inside of one page, where a cut leaves spaces. When
 * the room is used up, spaces are appended behind the bracket, which changes nothing;
 * then the bracket moves to the end (trace_bracket.h). The room is 1 MiB at first and
 * then doubles the file, up to 64 MiB at a time. Closing moves the bracket behind the
 * events and cuts the room off.
 *
 * A full disk shows when the file has to grow; it stays as it was. Threads: one at a
 * time. */
#ifndef HVD_TRACE_FILE_H
#define HVD_TRACE_FILE_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_trace_file;

/* Replaces the file at path, which must be one that can be written at any place (no
 * pipe), by an empty array; somebody who still writes to the older file does not disturb.
 * Returns 0, HVD_ERR_SYS and the reason, or HVD_ERR_NOMEM. */
int hvd_trace_file_open(const char *path, struct hvd_trace_file **out,
                        struct hvd_error *err);

/* Adds lines, each a JSON value of at most HVD_TRACE_TEXT_BYTES and '\n', as elements of
 * the array; they may wait in memory for flush. After the first failure, whose status it
 * returns and whose reason is in err, does nothing and returns 0. */
int hvd_trace_file_add(struct hvd_trace_file *file, const char *lines, size_t bytes,
                       struct hvd_error *err);
int hvd_trace_file_flush(struct hvd_trace_file *file, struct hvd_error *err);

/* Flushes, cuts the room off, closes. NULL is fine. */
void hvd_trace_file_close(struct hvd_trace_file *file);

#endif
