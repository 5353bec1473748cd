/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait too long: which ranks lack what.
 *
 *   any rank   STALL up, when a tensor of its own has been under way for the warning time
 *   rank 0     ASK down (the replay of the global set ends)
 *   all        HELD up, merged on the way: every tensor under way, for how long, on which ranks
 *   rank 0     a tensor that some rank has held too long lacks the ranks of its set that do not
 *              hold it: one warning for all; past the shutdown time, the job ends */
#ifndef HVD_STALL_INSPECTOR_H
#define HVD_STALL_INSPECTOR_H

#include "collectives/agreement/stalled.h"

struct hvd_agreement;

struct hvd_stall_inspector {
    int64_t look_ns; /* no tensor of this rank can have waited too long before */
    int answers; /* branches that have answered the ASK under way */
    struct hvd_stalled list; /* what they said */
    /* rank 0 */
    bool is_asking; /* an ASK is under way */
    int64_t next_ask_ns; /* not before */
    int64_t asked; /* how often */
};

/* It is look_ns: says so if this rank waits too long, and when to look again. */
int hvd_stall_inspector_look(struct hvd_agreement *agreement, int64_t now_ns);

/* Some rank waits too long: passes it up, or asks all. */
int hvd_stall_inspector_report(struct hvd_agreement *agreement, int64_t now_ns);

/* Rank 0 asks; wave: numbers this. */
int hvd_stall_inspector_answer(struct hvd_agreement *agreement, uint64_t wave,
                               int64_t now_ns);

/* A branch's answer. */
int hvd_stall_inspector_take_list(struct hvd_agreement *agreement, const void *data,
                                  size_t bytes);

void hvd_stall_inspector_finish(struct hvd_stall_inspector *inspector);

#endif
