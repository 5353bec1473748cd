/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ranks that hold others up: ranks that have not submitted a tensor, and ranks
 * that do not answer.
 *
 *   any rank   STALL up, when a tensor of its own has been in flight for the warning time
 *   rank 0     ASK down, with the number of the inquiry (wave); the replay of the
 *              global set ends
 *   all        HELD up, merged on the way: every tensor in flight, for how long, on which
 *              ranks
 *   rank 0     finds the tensors that are in flight for too long on some rank, and the
 *              ranks of their sets that lack them: one warning for all; past the
 *              shutdown time, the job ends; before, the first of these ranks are
 *              asked where they are (late_stacks.h)
 *
 * A rank whose process is stopped, swapped out or starved does not answer. A node of the
 * tree waits for its children in proportion to its height in the tree, so that the parent
 * of a silent rank is the first to give up. It sends SILENT up with that rank's number,
 * then HELD without its answer. The ranks below the silent one cannot be asked. Answers
 * that come too late belong to an earlier wave and are ignored.
 *
 * If rank 0, or a rank between it and this one, is silent, no ASK comes. A rank whose
 * STALL is not followed by an ASK warns about that itself; of the children on one node,
 * only the first does. Past the shutdown time, each of these ranks ends its part of the
 * job. */
#ifndef HVD_STALL_INSPECTOR_H
#define HVD_STALL_INSPECTOR_H

#include <stddef.h>

#include "collectives/agreement/stalled.h"

struct hvd_agreement;
struct hvd_record;

struct hvd_stall_inspector {
    int64_t look_ns; /* hvd_stall_inspector_look has nothing to do before this time */
    int64_t said_ns; /* when this rank last sent STALL; 0: never */
    int64_t heard_ns; /* when the last ASK came; 0: none has */
    /* The last ASK */
    bool is_asking; /* answers of branches are missing */
    uint64_t wave;
    int64_t patience_ns;
    int64_t until_ns; /* branches that have not answered by then are silent */
    bool *has_answered; /* [branches] */
    int answers; /* branches that have answered */
    /* [ranks of the job] whether its parent has given up waiting for its answer */
    bool *is_silent;
    struct hvd_stalled list; /* the merged answers */
    /* rank 0 */
    int64_t next_ask_ns; /* no earlier ASK */
    uint64_t asked; /* number of ASKs so far */
};

/* To be called at look_ns: reports this rank's tensors that have waited too long, and
 * gives up on branches that are silent. Sets look_ns anew. */
int hvd_stall_inspector_look(struct hvd_agreement *agreement, int64_t now_ns);

/* Handles a report that some rank has waited too long: passes it up or, on rank 0, asks
 * all ranks. */
int hvd_stall_inspector_report(struct hvd_agreement *agreement, int64_t now_ns);

/* Answers rank 0's ASK. */
int hvd_stall_inspector_answer(struct hvd_agreement *agreement, uint64_t wave,
                               int64_t now_ns);

/* Handle the parts of a branch's answer: the ranks that are silent, then the list of
 * tensors in flight, which has record->id bytes. */
int hvd_stall_inspector_take_silent(struct hvd_agreement *agreement, int branch,
                                    const struct hvd_record *record);
int hvd_stall_inspector_take_list(struct hvd_agreement *agreement, int branch,
                                  const struct hvd_record *record, const void *data);

/* Returns the parent if the parent, a rank above it or rank 0 seems not to forward this
 * rank's report, and writes a text that names the parent and rank 0. Otherwise returns
 * -1. */
int hvd_stall_inspector_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                                char *text, size_t bytes);

void hvd_stall_inspector_finish(struct hvd_stall_inspector *inspector);

#endif
