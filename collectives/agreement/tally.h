/* SPDX-License-Identifier: Apache-2.0 */
/* Which branches of the tree have reported which tensor, and as what. Pure.
 *
 * A tally is complete when every branch that its set needs has reported (members.h). Below
 * rank 0 it then goes up as one report of the whole subtree; equal descriptions have become
 * one on the way, so that rank 0 hears of each tensor once from each child. */
#ifndef HVD_TALLY_H
#define HVD_TALLY_H

#include "collectives/agreement/known.h"
#include "collectives/agreement/members.h"

struct hvd_rows {
    int64_t rank;
    int64_t rows; /* first dimension of the rank's tensor */
};

/* What one branch says of one tensor. */
struct hvd_tensor_report {
    struct hvd_known *known; /* it was named by its id; else NULL */
    const struct hvd_proposal *proposal; /* described in full; NULL if known */
    bool has_more; /* another description by the same branch follows */
    bool is_partial; /* a rank of the branch lacks it, because it has joined */
    int64_t max_block;
    const struct hvd_rows *rows; /* [row_count]; may be unaligned */
    uint32_t row_count;
};

struct hvd_tally {
    struct hvd_key key; /* name owned by known or descriptions[0] */
    struct hvd_known *known; /* some branch named it by this id */
    struct hvd_proposal **descriptions; /* [described] the others, all different */
    int described;
    int described_capacity;
    unsigned char *seen; /* [branches] */
    bool is_partial; /* when complete: some rank lacks it, because it has joined */
    int64_t max_block;
    struct hvd_rows *rows;
    uint32_t row_count;
    uint32_t row_capacity;
    int64_t since_ns; /* the first report */
    struct hvd_tally *next; /* in a list of complete ones */
};

struct hvd_tallies {
    const struct hvd_members *members; /* borrowed */
    struct hvd_table open; /* not complete */
    struct hvd_tally *complete; /* oldest first */
    struct hvd_tally **complete_end;
    struct hvd_tally *spare; /* to use again */
};

void hvd_tallies_init(struct hvd_tallies *tallies, const struct hvd_members *members);
void hvd_tallies_finish(struct hvd_tallies *tallies); /* zeroed is fine */

/* Takes a report (copied); completes the tally when it was the last one. A branch that reports
 * a tensor twice is HVD_ERR_ARG. */
int hvd_tallies_add(struct hvd_tallies *tallies, const struct hvd_key *key, int branch,
                    const struct hvd_tensor_report *report, int64_t now_ns);

/* Completes what is complete now, after a rank has joined. */
void hvd_tallies_recheck(struct hvd_tallies *tallies);

/* Takes the oldest complete tally; NULL when there is none. The caller gives it back. */
struct hvd_tally *hvd_tallies_take(struct hvd_tallies *tallies);
void hvd_tallies_give_back(struct hvd_tallies *tallies, struct hvd_tally *tally);

/* Drops what has been said of a tensor, of which from now on nobody reports. */
void hvd_tallies_drop(struct hvd_tallies *tallies, const struct hvd_key *key);

/* The first description: what the tensor is if all agree. */
const struct hvd_proposal *hvd_tally_proposal(const struct hvd_tally *tally);

/* On the wire. The record has been taken already; id 0: described in full. */
void hvd_put_tally(struct hvd_writer *writer, const struct hvd_tally *tally);
void hvd_put_tensor_report(struct hvd_writer *writer,
                           const struct hvd_tensor_report *report);

/* The parts of the message that report points into stay borrowed; *proposal is filled and
 * pointed to when the tensor is described in full. Returns 0 or HVD_ERR_ARG. */
int hvd_take_tensor_report(struct hvd_reader *reader, const struct hvd_record *record,
                           struct hvd_proposal *proposal,
                           struct hvd_tensor_report *report);

#endif
