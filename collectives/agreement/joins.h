/* SPDX-License-Identifier: Apache-2.0 */
/* Joins: a rank reports that it has no more data for the global process set. When all
 * ranks have done so, their joins end.
 *
 * JOIN goes up after the reports of the tensors that the rank still has. A replay reports
 * no tensors, so a join waits until the replay of the global set has ended, and those
 * tensors have been reported. */
#ifndef HVD_JOINS_H
#define HVD_JOINS_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_batch_header;
struct hvd_entry;

/* State of this rank's join. Between its start and its end, the rank has promised all
 * others that it has no more data for the global process set. */
struct hvd_joins {
    struct hvd_entry *own; /* this rank's join, in flight */
    /* this rank's join after all ranks have joined; ends when earlier tensors have run */
    struct hvd_entry *ended;
    bool is_deferred; /* report the join when the replay has ended */
};

/* This rank submits a join. */
int hvd_joins_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                     int64_t now_ns);

/* Notes that this rank, or one below it, has joined. */
int hvd_joins_note(struct hvd_agreement *agreement, int rank, int64_t now_ns);

/* hvd_joins_on_replay: a replay of the global set has begun, so a join is postponed until
 * the replay's end. hvd_joins_after_replay then reports the join. */
int hvd_joins_on_replay(struct hvd_agreement *agreement);
int hvd_joins_after_replay(struct hvd_agreement *agreement, int64_t now_ns);

/* Carries out the decision that all ranks have joined. */
int hvd_joins_take_end(struct hvd_agreement *agreement,
                       const struct hvd_batch_header *header);

/* Ends this rank's join, on which all ranks have agreed, unless an earlier batch is still
 * running on this rank. */
void hvd_joins_end_own(struct hvd_agreement *agreement);

/* Forgets this rank's join, which has been dropped. With `all`, also forgets a join that
 * all ranks have agreed on. */
void hvd_joins_drop(struct hvd_joins *joins, bool all);

#endif
