/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait too long: which ranks lack what, and which do not answer.
 *
 *   any rank   STALL up, when a tensor of its own has been under way for the warning time
 *   rank 0     ASK down (the replay of the global set ends); wave: numbers it
 *   all        HELD up, merged on the way: every tensor under way, for how long, on which ranks
 *   rank 0     a tensor that some rank has held too long lacks the ranks of its set that do not
 *              hold it: one warning for all; past the shutdown time, the job ends
 *
 * A rank whose process is stopped, swapped out or starved does not answer. Each node of
 * the tree waits for a child as long as its height in the tree says, so that the one
 * right above a silent rank gives up first; it sends up SILENT with that rank's number,
 * then HELD without it. The ranks behind it cannot be asked. What comes too late belongs
 * to an earlier wave and is ignored.
 *
 * When rank 0 is silent, or a rank between it and this one, no ASK comes. A rank that
 * waits for that in vain says so itself, of the ranks of its node only the first behind
 * the parent; past the shutdown time each ends its part of the job. */
#ifndef HVD_STALL_INSPECTOR_H
#define HVD_STALL_INSPECTOR_H

#include <stddef.h>

#include "collectives/agreement/stalled.h"

struct hvd_agreement;
struct hvd_record;

struct hvd_stall_inspector {
    int64_t look_ns; /* there is nothing to do before */
    int64_t said_ns; /* when this rank last sent STALL; 0: never */
    int64_t heard_ns; /* when the last ASK came; 0: none has */
    /* Of the last ASK */
    bool is_asking; /* answers of branches are awaited */
    uint64_t wave;
    int64_t patience_ns;
    int64_t until_ns; /* then branches that have not answered are silent */
    bool *has_answered; /* [branches] */
    int answers; /* of them */
    bool *is_silent; /* [ranks of the job] right below a node that has waited in vain */
    struct hvd_stalled list; /* what the others said */
    /* rank 0 */
    int64_t next_ask_ns; /* not before */
    uint64_t asked; /* how often */
};

/* It is look_ns: says so if this rank waits too long, gives up silent ones; sets look_ns
 * anew. */
int hvd_stall_inspector_look(struct hvd_agreement *agreement, int64_t now_ns);

/* Some rank waits too long: passes it up, or asks all. */
int hvd_stall_inspector_report(struct hvd_agreement *agreement, int64_t now_ns);

/* Rank 0 asks. */
int hvd_stall_inspector_answer(struct hvd_agreement *agreement, uint64_t wave,
                               int64_t now_ns);

/* A branch's answer: ranks that are silent, then the list, which has record->id bytes. */
int hvd_stall_inspector_take_silent(struct hvd_agreement *agreement, int branch,
                                    const struct hvd_record *record);
int hvd_stall_inspector_take_list(struct hvd_agreement *agreement, int branch,
                                  const struct hvd_record *record, const void *data);

/* Who may keep this rank's complaint from rank 0: its parent, with a sentence that also
 * names rank 0; -1: nobody is known to. */
int hvd_stall_inspector_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                                char *text, size_t bytes);

void hvd_stall_inspector_finish(struct hvd_stall_inspector *inspector);

#endif
