/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanges of a static job: who has handed in, who is missing, and what those who wait are
 * told. Pure: no clock, no sockets.
 *
 * Ranks that hand in under the same key (list of ranks, number) meet:
 *   all of them are here           each gets what all have handed in
 *   one that waited is gone, one   those that wait get a sentence that names it, and so does each
 *   has ended, or time is up       of the others when it comes
 * A rank that comes once more under a key for which it got its answer begins a new meeting. */
#ifndef HVD_ROSTER_ROUND_H
#define HVD_ROSTER_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

/* More ranks than that are taken for a mistake. */
#define HVD_MEETING_MOST_RANKS (1 << 20)

/* What a rank says of itself; borrowed for the call, not trusted. */
struct hvd_meeting_offer {
    uint64_t list; /* with number: the key */
    uint32_t number;
    int rank; /* of the launch */
    int index; /* among those that meet */
    int count; /* of these */
    const int32_t *ranks; /* [count], of the launch; NULL: all, 0 ... count - 1 */
    int timeout_ms; /* how long the first waits for the last */
};

struct hvd_meeting;

/* Zeroed: nobody waits. */
struct hvd_meetings {
    struct hvd_meeting **all;
    int count;
    int *
        ended; /* [ended_count], by rank of the launch: its wait status, -1 while it lives */
    int ended_count;
};

/* Why ranks do not meet. */
struct hvd_meeting_failure {
    struct hvd_error error;
    int culprit; /* the rank of the launch that has failed; -1: none is known */
};

enum hvd_meeting_act {
    HVD_MEETING_WAIT,
    HVD_MEETING_COMPLETE, /* ids: all who met, in the order of the list: they get all */
    HVD_MEETING_FAIL, /* ids: those who wait; they get the failure */
};

struct hvd_meeting_step {
    enum hvd_meeting_act act;
    const int *ids; /* [count], borrowed until the next call for these meetings */
    int count;
    int64_t
        again_ms; /* when to ask again at the latest; -1: when something has happened */
    struct hvd_meeting_failure failure; /* of FAIL */
};

void hvd_meetings_finish(struct hvd_meetings *meetings);

/* A rank has handed in, over the connection id, which waits for nothing else. Fails, for this
 * rank alone, with what it is to be told. */
int hvd_meetings_offer(struct hvd_meetings *meetings, int id,
                       const struct hvd_meeting_offer *offer, int64_t now_ms,
                       struct hvd_meeting_failure *failure);

/* The connection of a rank on host is gone; it may have waited for nothing. */
void hvd_meetings_leave(struct hvd_meetings *meetings, int id, const char *host);

/* The process of this rank of the launch has ended, with the status of waitpid: it hands in no more. */
void hvd_meetings_end(struct hvd_meetings *meetings, int rank, int wait_status);

/* The next action; to be called after each event, until it returns WAIT. */
void hvd_meetings_next(struct hvd_meetings *meetings, int64_t now_ms,
                       struct hvd_meeting_step *step);

#endif
