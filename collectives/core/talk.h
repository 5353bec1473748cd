/* SPDX-License-Identifier: Apache-2.0 */
/* The control tree as a source (loop.h): passes messages of other ranks to the parts that
 * handle them.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_TALK_H
#define HVD_TALK_H

#include <stdint.h>

struct hvd_job;

struct hvd_talk {
    int64_t sockets_seen_ns; /* when the control sockets were last read */
};

/* Registers the tree before the job is connected. Its close function closes the control
 * network and the uplink, whichever are open. */
void hvd_talk_open(struct hvd_job *job);

/* Handles the messages that the sockets have received. Returns the status of
 * hvd_uplink_progress_sockets. */
int hvd_talk_hear_sockets(struct hvd_job *job);

#endif
