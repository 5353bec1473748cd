/* SPDX-License-Identifier: Apache-2.0 */
/* The network between nodes as a source (loop.h), and what becomes of a job that loses a peer on it.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_NETWORK_H
#define HVD_NETWORK_H

#include <stdbool.h>

struct hvd_engine;

/* When engine->net is made; on one node there is none. */
void hvd_network_open(struct hvd_engine *engine);

/* A batch could not send to a peer, and does not know to which. True: the network has lost one, and
 * blames it, unless the control network tells before who died. */
bool hvd_network_has_lost_peer(struct hvd_engine *engine);

#endif
