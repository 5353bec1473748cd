/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of the net tests do in common. */
#ifndef HVD_TEST_NET_RANK_H
#define HVD_TEST_NET_RANK_H

#include "collectives/transport/net/net.h"
#include "tests/collectives/job.h"

/* Creates, exchanges addresses, connects; returns once all ranks have, because before
 * that UCX lets nobody in. Says why and exits when that fails. The test calls
 * net_rank_serve_connect. */
struct hvd_net *net_rank_connect(struct job_rank *self);

/* The same in two steps: the first, and the others. */
struct hvd_net *net_rank_create(void);
void net_rank_meet(struct job_rank *self, struct hvd_net *net);

void net_rank_serve_connect(struct job *job);

/* Post a message. */
void net_rank_send(struct hvd_net *net, int peer, uint32_t channel, const void *data,
                   size_t bytes, struct hvd_net_op *op);
void net_rank_recv(struct hvd_net *net, int peer, uint32_t channel, void *data,
                   size_t bytes, struct hvd_net_op *op);

/* Waits until all operations have ended, asleep in between, or the time is over. True
 * when they have ended. */
bool net_rank_wait(struct hvd_net *net, const struct hvd_net_op *ops, int count,
                   int timeout_ms);

/* A barrier among all ranks through the test, in which the net goes on; the test calls
 * job_serve_exchange. */
void net_rank_gather(struct job_rank *self, struct hvd_net *net);

/* Seconds of CPU that this process has used. */
double net_rank_cpu(void);

#endif
