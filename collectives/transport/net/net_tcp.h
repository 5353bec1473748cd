/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments over TCP, for networks without RDMA and machines without UCX.
 *
 * Each rank connects to every rank that it sends to: a connection carries fragments in
 * one direction. Both ends first prove that they know the job's secret
 * (sock/handshake.h), and trust no other data until then. Until then the cost of a
 * connection is bounded (acceptor.h). */
#ifndef HVD_NET_TCP_H
#define HVD_NET_TCP_H

#include "collectives/transport/net/net_transport.h"
#include "pmix_boot/sock/handshake.h"

struct hvd_net_tcp;

extern const struct hvd_net_transport hvd_net_tcp_transport;

/* Listens on a port chosen by the kernel. Its address is a struct hvd_connect_card. */
int hvd_net_tcp_create(const struct hvd_net_handlers *handlers, struct hvd_net_tcp **out,
                       struct hvd_error *err);

/* Returns the address that other ranks need to connect; borrowed, valid until destroy. */
void hvd_net_tcp_address(const struct hvd_net_tcp *tcp, const void **address,
                         size_t *bytes);

/* Admits ranks of this job from now on. Call once, before any other function of the
 * transport. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_tcp_join(struct hvd_net_tcp *tcp, const struct hvd_handshake_party *self);

#endif
