/* SPDX-License-Identifier: Apache-2.0 */
/* How a member aborts a process set (hvd_set_abort_start): nothing more is agreed on in
 * it, and what is left of it is its removal. A set whose ranks disagree on numbered calls
 * ends in the same way, without a member that asks; of the global set only these calls
 * do, and it stays for all others.
 *
 *   a member   ABORT up: its rank, the set, why. Nodes of the tree pass it on at once
 *   rank 0     ends the set's replay, if there is one, so that each batch is cancelled or runs on all members;
 *              then ABORT down, in the part of the set, with the sentence that all members get
 *   members    batches that were agreed on run. All else of the set ends, and what comes later, too
 *   nodes      forget who has which tensor of the set, and ignore reports that cross the decision
 */
#ifndef HVD_SET_ABORTS_H
#define HVD_SET_ABORTS_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_branch_message;
struct hvd_entry;
struct hvd_reader;
struct hvd_set;

/* This rank asks for it; a rank of a branch does, whose record has been taken already. */
int hvd_set_aborts_submit(struct hvd_agreement *agreement, struct hvd_entry *entry);
int hvd_set_aborts_take_wish(struct hvd_agreement *agreement,
                             struct hvd_branch_message *message, uint64_t rank);

/* Rank 0: the ranks of the set disagree, as text says. */
int hvd_set_aborts_disagree(struct hvd_agreement *agreement, struct hvd_set *set,
                            const char *text);

/* Rank 0: the set's replay has ended. */
int hvd_set_aborts_after_replay(struct hvd_agreement *agreement, struct hvd_set *set);

/* The decision. Its record has been taken already. set: NULL, if there is no such set. */
int hvd_set_aborts_take(struct hvd_agreement *agreement, struct hvd_set *set,
                        bool ranks_disagree, struct hvd_reader *reader);

#endif
