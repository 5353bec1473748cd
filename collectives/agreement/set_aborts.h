/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts a process set when a member asks for it (hvd_set_abort_start): nothing more is
 * agreed on in the set, and it can only be removed. A set whose ranks disagree on
 * numbered calls is aborted without such a request. The global set cannot be aborted; in
 * it, only numbered calls end, and it stays usable for all other requests.
 *
 *   a member   ABORT up: its rank, the set, the reason; nodes of the tree pass it on
 *   rank 0     first ends the set's replay, if there is one, so that each batch is
 *              cancelled or runs on all members; then ABORT down, in the part of the set,
 *              with the text for all members
 *   members    run the batches that were agreed on; all other requests of the set fail,
 *              and so do later ones
 *   nodes      drop the reports of the set's tensors, and ignore reports that are already
 *              on the way */
#ifndef HVD_SET_ABORTS_H
#define HVD_SET_ABORTS_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_branch_message;
struct hvd_entry;
struct hvd_reader;
struct hvd_set;

/* Request the abort of a set: for this rank, or for a rank of a branch, whose record the
 * caller has already read. */
int hvd_set_aborts_submit(struct hvd_agreement *agreement, struct hvd_entry *entry);
int hvd_set_aborts_take_wish(struct hvd_agreement *agreement,
                             struct hvd_branch_message *message, uint64_t rank);

/* Rank 0: aborts the set because its ranks disagree. text: the error for users. */
int hvd_set_aborts_disagree(struct hvd_agreement *agreement, struct hvd_set *set,
                            const char *text);

/* Rank 0: continues an abort that has waited for the end of the set's replay. */
int hvd_set_aborts_after_replay(struct hvd_agreement *agreement, struct hvd_set *set);

/* Carries out the decision, whose record the caller has already read. set is NULL if
 * there is no such set. */
int hvd_set_aborts_take(struct hvd_agreement *agreement, struct hvd_set *set,
                        bool ranks_disagree, struct hvd_reader *reader);

#endif
