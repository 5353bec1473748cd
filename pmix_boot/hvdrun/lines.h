/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards one stream of one rank to the terminal in whole lines, so that those of
 * different ranks never mix, each with an optional prefix; and an unchanged copy to a
 * file. */
#ifndef HVDRUN_LINES_H
#define HVDRUN_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct hvdrun_lines {
    int out; /* where lines go */
    int copy; /* -1: no copy */
    int copy_error; /* errno with which the copy ended: the rest is not copied; 0 */
    const char *label; /* borrowed, "[3]<stdout>: "; NULL: no prefix */
    bool has_time; /* the time before the label */
    char *held; /* the beginning of a line whose end has not come */
    size_t held_bytes;
};

/* Takes what came. Returns 0, or HVD_ERR_SYS with errno when out does not take it; a copy
 * that cannot be written is no failure. */
int hvdrun_lines_add(struct hvdrun_lines *lines, const char *data, size_t bytes);

/* The stream has ended: writes what is held, and frees. A line without an end gets one
 * where there is a label. Does not close the descriptors. */
int hvdrun_lines_end(struct hvdrun_lines *lines);

#endif
