/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that are added and removed. All ranks of the job agree on each change.
 *
 * Removing a set is reported when this rank has done with it, so that no batch of it is left on any
 * rank when it goes. */
#ifndef HVD_SET_CHANGES_H
#define HVD_SET_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_entry;

struct hvd_set_changes {
    int deferred; /* removals by this rank that wait until it has done with the set */
};

/* This rank has asked to remove the set. */
bool hvd_set_changes_is_removing(const struct hvd_agreement *agreement, int set);

/* This rank's removal of a set. */
int hvd_set_changes_submit_removal(struct hvd_agreement *agreement,
                                   struct hvd_entry *entry);

/* Reports the removals that have waited long enough. */
int hvd_set_changes_report(struct hvd_agreement *agreement);

/* All ranks have agreed on this rank's entry: does it, and ends the entry. set: rank 0's number. */
int hvd_set_changes_add(struct hvd_agreement *agreement, struct hvd_entry *entry,
                        int64_t set);
void hvd_set_changes_remove(struct hvd_agreement *agreement, struct hvd_entry *entry);

#endif
