/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the difference between rank 0's clock and this rank's. Each rank asks its
 * parent in the tree for the time and for the parent's own difference to rank 0, and adds
 * that to its difference to the parent. Ranks of one node share a clock, but ask as well,
 * to learn their leader's difference.
 *
 *   child    CLOCK_ASK up: when it asked
 *   parent   CLOCK_ANSWER down to that child: this time, when the question arrived, when
 *            the answer left, and the parent's own difference to rank 0
 *
 * There is a burst of rounds at the beginning, and later a short one every two seconds
 * while progress is called; on idle ranks, nothing is sent. A burst is extended for a
 * while if its error is still above 20 us, which is hard to reach on busy CPUs.
 *
 * Threads: one at a time, the uplink's; hvd_clock_sync_offset may be called by any
 * thread. */
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
    int64_t (*now_ns)(void); /* CLOCK_MONOTONIC; tests replace it */
    bool shares_clock; /* this rank shares its clock with its parent, or has no parent */
    struct hvd_clock_offset edge; /* the difference to the parent */
    _Atomic int64_t offset_ns; /* rank 0's clock minus ours */
    _Atomic int state; /* how well offset_ns is known: enum hvd_clock_state */
    /* largest possible error of offset_ns when it was computed: the sum of the errors
     * between this rank and rank 0 */
    _Atomic int64_t error_ns;
    bool is_waiting; /* the parent has not answered yet */
    int rounds; /* rounds of the present burst so far */
    int64_t burst_ns; /* when the present burst began */
    int64_t next_ns; /* earliest time of the next question */
};

/* Sends nothing yet. uplink is borrowed. */
void hvd_clock_sync_init(struct hvd_clock_sync *sync, struct hvd_uplink *uplink,
                         const struct hvd_boot *boot);

/* Asks the parent if it is time to. Returns 0 or HVD_ERR_NOMEM. */
int hvd_clock_sync_progress(struct hvd_clock_sync *sync);

/* Handle a child's message HVD_MESSAGE_CLOCK_ASK, or the parent's answer. Malformed
 * messages are ignored. */
void hvd_clock_sync_on_ask(struct hvd_clock_sync *sync,
                           const struct hvd_uplink_event *event);
void hvd_clock_sync_on_answer(struct hvd_clock_sync *sync,
                              const struct hvd_uplink_event *event);

/* Returns rank 0's clock minus ours, and its largest possible error. Any thread may call
 * this. */
enum hvd_clock_state hvd_clock_sync_offset(struct hvd_clock_sync *sync,
                                           int64_t *offset_ns, int64_t *error_ns);

#endif
