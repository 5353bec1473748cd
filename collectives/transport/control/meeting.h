/* SPDX-License-Identifier: Apache-2.0 */
/* What neighbours say to each other while the control tree is built; control_wire.h has the
 * order of events. A failure is spread as the reason of the end (hvd_control_spread). */
#ifndef HVD_MEETING_H
#define HVD_MEETING_H

#include <stdbool.h>

#include "collectives/transport/control/control_state.h"
#include "collectives/transport/control/sharing.h"

struct hvd_meeting {
    struct hvd_control *control;
    struct hvd_sharing sharing;
    bool is_handed_out;
    bool is_ready_sent;
    bool is_go; /* the whole tree is up */
};

/* The tree is up, or there is a reason why it will never be. */
bool hvd_meeting_is_over(const struct hvd_meeting *meeting);

/* A guest has proved to be rank `child`; see hvd_guests_admit. context is the meeting. */
bool hvd_meeting_admit(void *context, int child, struct hvd_link *link);

/* The parent has welcomed this rank; the meeting takes the link over. */
void hvd_meeting_join(struct hvd_meeting *meeting, struct hvd_link *link);

/* Reads from a neighbour that has something to say, writes what is queued for it. */
void hvd_meeting_attend(struct hvd_meeting *meeting, struct hvd_neighbour *neighbour);

/* Passes on that all is well, when it is: up that all below are there, down that all are. */
void hvd_meeting_pass_on(struct hvd_meeting *meeting);

#endif
