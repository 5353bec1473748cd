/* SPDX-License-Identifier: Apache-2.0 */
/* Joins: a rank that has nothing more for the global process set says so; when all have,
 * their joins end.
 *
 * JOIN goes up behind the reports of the tensors that the rank has. A join is not
 * replayed: it waits until the replay of the global set has ended, when those tensors
 * have been reported. */
#ifndef HVD_JOINS_H
#define HVD_JOINS_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_agreement;
struct hvd_batch_header;
struct hvd_entry;

/* From the start to the end of its join a rank has told all others that it has nothing
 * more for the global process set. */
struct hvd_joins {
    struct hvd_entry *own; /* this rank's, under way */
    struct hvd_entry *ended; /* over, but tensors submitted before it still run */
    bool is_deferred; /* until the replay has ended */
};

/* This rank's join. */
int hvd_joins_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                     int64_t now_ns);

/* A rank at or below this one has joined. */
int hvd_joins_note(struct hvd_agreement *agreement, int rank, int64_t now_ns);

/* A replay of the global set has begun, or has ended. */
int hvd_joins_on_replay(struct hvd_agreement *agreement);
int hvd_joins_after_replay(struct hvd_agreement *agreement, int64_t now_ns);

/* All ranks have joined, by this decision. */
int hvd_joins_take_end(struct hvd_agreement *agreement,
                       const struct hvd_batch_header *header);

/* Ends this rank's join, which is over, if all that it runs since before it has ended. */
void hvd_joins_end_own(struct hvd_agreement *agreement);

/* This rank's join has been dropped, or only if it is not over yet. */
void hvd_joins_drop(struct hvd_joins *joins, bool all);

#endif
