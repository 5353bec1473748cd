/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments over TCP, where no network has remote direct memory access (or UCX is not there).
 *
 * Each rank that sends to another one connects to it: a connection carries fragments in one
 * direction. Both ends prove that they know the job's secret (wire/handshake.h) before either
 * believes anything else; until then a connection is bounded in what it costs (acceptor.h). */
#ifndef HVD_NET_TCP_H
#define HVD_NET_TCP_H

#include "collectives/transport/net/net_carrier.h"
#include "pmix_boot/wire/handshake.h"

struct hvd_net_tcp;

extern const struct hvd_net_carrier hvd_net_tcp_carrier;

/* Listens on a port that the kernel chooses. Its address is a hvd_connect_card. */
int hvd_net_tcp_create(const struct hvd_net_handlers *handlers, struct hvd_net_tcp **out,
                       struct hvd_error *err);

/* What other ranks need to connect; borrowed, valid until destroy. */
void hvd_net_tcp_address(const struct hvd_net_tcp *tcp, const void **address,
                         size_t *bytes);

/* Lets ranks of this job in, from now on. Once, before anything of the carrier. Returns 0, or
 * HVD_ERR_NOMEM. */
int hvd_net_tcp_join(struct hvd_net_tcp *tcp, const struct hvd_handshake_party *self);

#endif
