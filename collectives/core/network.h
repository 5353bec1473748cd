/* SPDX-License-Identifier: Apache-2.0 */
/* The network between nodes as a source (loop.h), and the end of a job that loses a peer.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_NETWORK_H
#define HVD_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_job;

/* Must be zeroed before use. */
struct hvd_network {
    int64_t lost_ns; /* when a peer was lost; 0: none */
};

/* Registers the network, once job->net exists. Not called in a job of one node. */
void hvd_network_open(struct hvd_job *job);

/* Whether the network has lost a peer. A caller whose batch could not be sent asks this.
 * The network later blames that peer, unless the control network reports by then which
 * rank died. */
bool hvd_network_has_lost_peer(struct hvd_job *job);

/* Whether a peer is lost, but not blamed yet, because the control network may still
 * report which rank died. */
bool hvd_network_waits_for_word(const struct hvd_job *job);

#endif
