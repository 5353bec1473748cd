/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/trace/straggler_cell.h"

#include <stdio.h>

const char *hvd_straggler_time_text(char text[HVD_STRAGGLER_CELL], double us)
{
    if (us < 1e3) {
        snprintf(text, HVD_STRAGGLER_CELL, "%.0f us", us);
    } else if (us < 1e6) {
        snprintf(text, HVD_STRAGGLER_CELL, "%.1f ms", us / 1e3);
    } else {
        snprintf(text, HVD_STRAGGLER_CELL, "%.1f s", us / 1e6);
    }
    return text;
}
