/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that ranks in the net tests share. */
#ifndef HVD_TEST_NET_RANK_H
#define HVD_TEST_NET_RANK_H

#include "collectives/transport/net/net.h"
#include "tests/collectives/job.h"

/* Creates a network, exchanges addresses and connects. Returns after all ranks have
 * connected, because before that UCX refuses messages. On failure, prints the reason and
 * exits. The test must call net_rank_serve_connect. */
struct hvd_net *net_rank_connect(struct job_rank *self);

/* net_rank_connect in two steps: net_rank_create creates the network, net_rank_meet does
 * the rest. */
struct hvd_net *net_rank_create(void);
void net_rank_meet(struct job_rank *self, struct hvd_net *net);

void net_rank_serve_connect(struct job *job);

/* Starts a send or a receive. */
void net_rank_send(struct hvd_net *net, int peer, uint32_t channel, const void *data,
                   size_t bytes, struct hvd_net_op *op);
void net_rank_recv(struct hvd_net *net, int peer, uint32_t channel, void *data,
                   size_t bytes, struct hvd_net_op *op);

/* Waits until all operations have ended or the time is over; sleeps in between. Returns
 * whether all have ended. */
bool net_rank_wait(struct hvd_net *net, const struct hvd_net_op *ops, int count,
                   int timeout_ms);

/* A barrier of all ranks, while the network makes progress; the test must call
 * job_serve_exchange. */
void net_rank_gather(struct job_rank *self, struct hvd_net *net);

/* Returns the CPU time that this process has used, in seconds. */
double net_rank_cpu(void);

#endif
