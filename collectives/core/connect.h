/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to the job: from a single process to a rank that can talk to all others.
 *
 *   1. open the control sockets; their addresses are part of this rank's card
 *   2. boot: ranks, nodes, the job's secret, all cards; check that all ranks have the
 *      same table of algorithms
 *   3. connect the control tree, and through it the node's shared memory and eventfds
 *   4. more than one node: the network, whose addresses go up the tree and come down */
#ifndef HVD_CONNECT_H
#define HVD_CONNECT_H

#include "gpu_binding/base/error.h"

struct hvd_boot_query;
struct hvd_job;

/* Steps 1 to 3. */
int hvd_connect_job(struct hvd_job *job, struct hvd_boot_query *query,
                    struct hvd_error *err);

/* Step 4. hvd_connect_open_net opens the network, before the loop runs. hvd_connect_net
 * connects it, by driving the job. */
int hvd_connect_open_net(struct hvd_job *job, struct hvd_error *err);
int hvd_connect_net(struct hvd_job *job, struct hvd_error *err);

#endif
