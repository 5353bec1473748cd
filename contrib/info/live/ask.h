/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --job and --pid: ask the ranks of a running job what they do. */
#ifndef HVD_INFO_LIVE_ASK_H
#define HVD_INFO_LIVE_ASK_H

#include <stdbool.h>

#include "contrib/info/live/live.h"

struct hvd_info_live_question {
    struct hvd_info_selection which;
    bool is_job; /* ask all nodes of which.job; otherwise this node */
    bool is_raw; /* print one line per rank, for the hvd-info that asks all nodes */
    bool is_json;
    int watch_s; /* ask every so many seconds until no rank is left; 0: ask once */
};

/* Parses "1234" or "1234.0". */
int hvd_info_live_parse_job(const char *text, struct hvd_info_selection *which,
                            struct hvd_error *err);

/* Prints what the ranks do. HVD_ERR_STATE if there are no ranks. */
int hvd_info_live(const struct hvd_info_live_question *question, struct hvd_error *err);

#endif
