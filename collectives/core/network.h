/* SPDX-License-Identifier: Apache-2.0 */
/* The network between nodes as a source (loop.h), and what becomes of a job that loses a
 * peer on it.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_NETWORK_H
#define HVD_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_job;

/* Zeroed at first. */
struct hvd_network {
    int64_t lost_ns; /* when a peer was lost; 0: none is */
};

/* When job->net is made; on one node there is none. */
void hvd_network_open(struct hvd_job *job);

/* A batch could not send to a peer, and does not know to which. True: the network has
 * lost one, and blames it, unless the control network tells before who died. */
bool hvd_network_has_lost_peer(struct hvd_job *job);

/* A peer is lost, and is going to be blamed. */
bool hvd_network_waits_for_word(const struct hvd_job *job);

#endif
