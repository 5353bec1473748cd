/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of rank 0, as every rank sees it: each rank asks its parent in the tree of
 * ranks for the time, and how far the parent is from rank 0; both add up. Ranks of one
 * node have one clock, but ask as well for how far their leader is.
 *
 *   child    CLOCK_ASK up: when it asked
 *   parent   CLOCK_ANSWER down to that child: that, when it got it, when it answers, and its
 *            own distance to rank 0
 *
 * A burst of rounds at the beginning, later a short one every two seconds as long as
 * somebody calls progress: on a tree of machines at rest nothing is sent. A burst goes on
 * for a while when it has not brought the error below 20 us, which on busy cpus takes
 * luck.
 *
 * Threads: one at a time, the uplink's; hvd_clock_sync_offset any. */
#ifndef HVD_CLOCK_SYNC_H
#define HVD_CLOCK_SYNC_H

#include <stdatomic.h>

#include "collectives/trace/clock_offset.h"
#include "collectives/transport/control/uplink.h"
#include "pmix_boot/boot.h"

enum hvd_clock_state {
    HVD_CLOCK_UNKNOWN,
    HVD_CLOCK_ROUGH, /* after one round */
    HVD_CLOCK_GOOD, /* after the first burst */
};

struct hvd_clock_sync {
    struct hvd_uplink *uplink;
    bool has_parent;
    int64_t (*now_ns)(void); /* CLOCK_MONOTONIC; tests have others */
    bool shares_clock; /* with the parent, or has no parent */
    struct hvd_clock_offset edge; /* to the parent */
    _Atomic int64_t offset_ns; /* rank 0's clock minus ours */
    _Atomic int state; /* of offset_ns: enum hvd_clock_state */
    _Atomic int64_t
        error_ns; /* of offset_ns at most, when computed; adds up on the way */
    bool is_waiting; /* for an answer */
    int rounds; /* in this burst, so far */
    int64_t burst_ns; /* when it began */
    int64_t next_ns; /* nothing is asked before */
};

/* Nothing is sent yet. uplink is borrowed. */
void hvd_clock_sync_init(struct hvd_clock_sync *sync, struct hvd_uplink *uplink,
                         const struct hvd_boot *boot);

/* Asks if it is time to. Returns 0 or HVD_ERR_NOMEM. */
int hvd_clock_sync_progress(struct hvd_clock_sync *sync);

/* A message of type HVD_MESSAGE_CLOCK_ASK has come from a child, or an answer from the
 * parent. What cannot be read is ignored. */
void hvd_clock_sync_on_ask(struct hvd_clock_sync *sync,
                           const struct hvd_uplink_event *event);
void hvd_clock_sync_on_answer(struct hvd_clock_sync *sync,
                              const struct hvd_uplink_event *event);

/* Rank 0's clock minus ours, and how wrong that is at most. Any thread. */
enum hvd_clock_state hvd_clock_sync_offset(struct hvd_clock_sync *sync,
                                           int64_t *offset_ns, int64_t *error_ns);

#endif
