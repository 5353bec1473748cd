/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of the straggler report's tables. Pure. */
#ifndef HVD_STRAGGLER_CELL_H
#define HVD_STRAGGLER_CELL_H

enum {
    HVD_STRAGGLER_CELL = 32, /* bytes of a number with its unit */
};

/* Writes a time with a suitable unit to `text`, and returns it. */
const char *hvd_straggler_time_text(char text[HVD_STRAGGLER_CELL], double us);

#endif
