/* SPDX-License-Identifier: Apache-2.0 */
/* The control tree as a source (loop.h): hands messages of other ranks to the parts that
 * they are for.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_TALK_H
#define HVD_TALK_H

#include <stdint.h>

struct hvd_job;

struct hvd_talk {
    int64_t sockets_seen_ns; /* when the control sockets were last looked at */
};

/* Before the job is connected: closes the control network and the uplink, as far as they
 * are open. */
void hvd_talk_open(struct hvd_job *job);

/* Takes what has come over the sockets. Returns as hvd_uplink_progress_sockets. */
int hvd_talk_hear_sockets(struct hvd_job *job);

#endif
