/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what the ranks of a job do, and which ranks they wait for. Pure. */
#ifndef HVD_INFO_LIVE_REPORT_H
#define HVD_INFO_LIVE_REPORT_H

#include <stdio.h>

#include "contrib/info/live/live.h"

/* Prints a table, or a line of JSON, for each job of each step. Sorts the ranks. */
int hvd_info_live_print(struct hvd_info_ranks *ranks, bool is_json, FILE *out,
                        struct hvd_error *err);

#endif
