/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and removes process sets. All ranks of the job agree on each change, except for
 * sets that their members create and remove alone.
 *
 * A rank reports the removal of a set once it no longer uses it: none of the set's
 * tensors is in flight, no batch runs, and its replay has ended. So no rank runs a batch
 * of a set that is removed. */
#ifndef HVD_SET_CHANGES_H
#define HVD_SET_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_branch_message;
struct hvd_entry;
struct hvd_reader;

struct hvd_set_changes {
    int deferred; /* removals by this rank that it has not reported, see above */
};

/* Whether this rank has asked to remove the set. */
bool hvd_set_changes_is_removing(const struct hvd_agreement *agreement, int set);

/* Requests the removal of a set for this rank. */
int hvd_set_changes_submit_removal(struct hvd_agreement *agreement,
                                   struct hvd_entry *removal);

/* Reports the deferred removals of sets that this rank no longer uses. */
int hvd_set_changes_report(struct hvd_agreement *agreement);

/* Carry out this rank's entry, on which all ranks have agreed, and end it. set: rank 0's
 * number. Removing a set that still has a running batch fails with HVD_ERR_PEER, and a
 * GIVE_UP event has the text. */
int hvd_set_changes_add(struct hvd_agreement *agreement, struct hvd_entry *entry,
                        int64_t set);
int hvd_set_changes_remove(struct hvd_agreement *agreement, struct hvd_entry *entry);

/* --- sets that their members create alone: set_creations.h --- */
/* Request a set: for this rank, or for a rank of a branch, whose record the caller has
 * already read. */
int hvd_set_changes_submit_creation(struct hvd_agreement *agreement,
                                    const struct hvd_entry *entry);
int hvd_set_changes_take_wish(struct hvd_agreement *agreement,
                              struct hvd_branch_message *message, uint64_t rank);

/* Carry out decisions about such a set, which reach its members and the other ranks of
 * their nodes. The caller has already read the record. The removal comes when all members
 * have reported that they no longer use the set. */
int hvd_set_changes_take_creation(struct hvd_agreement *agreement, int set,
                                  struct hvd_reader *reader);
int hvd_set_changes_take_removal(struct hvd_agreement *agreement, int set);

#endif
