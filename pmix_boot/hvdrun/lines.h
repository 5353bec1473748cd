/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards one stream of a rank to the terminal in whole lines, so that lines of
 * different ranks never mix. Lines can get a prefix, and a file can get an unchanged
 * copy. */
#ifndef HVDRUN_LINES_H
#define HVDRUN_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct hvdrun_lines {
    int out; /* where lines go */
    int copy; /* -1: no copy */
    int copy_error; /* errno that ended the copy; 0: none */
    const char *label; /* borrowed, "[3]<stdout>: "; NULL: no prefix */
    bool has_time; /* put the time before the label */
    char *held; /* beginning of a line that is not complete yet */
    size_t held_bytes;
};

/* Adds output of the rank. Returns 0, or HVD_ERR_SYS with errno if writing to `out`
 * failed. A failed copy only sets copy_error. */
int hvdrun_lines_add(struct hvdrun_lines *lines, const char *data, size_t bytes);

/* Ends the stream: writes the held line, with a newline if lines have labels, and frees
 * it. Does not close the descriptors. */
int hvdrun_lines_end(struct hvdrun_lines *lines);

#endif
