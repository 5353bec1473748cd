/* SPDX-License-Identifier: Apache-2.0 */
/* UCX as a carrier: one worker, endpoints, fragments as eager active messages, those of device memory
 * by rendezvous. */
#ifndef HVD_NET_UCX_H
#define HVD_NET_UCX_H

#include "collectives/transport/net/net_carrier.h"

struct hvd_ucx;

extern const struct hvd_net_carrier hvd_ucx_carrier;

/* Opens UCX with what the user configured (UCX_*), without TCP where it may use an RDMA adapter. Leaves
 * signal handlers as they were before UCX was loaded, and UCX's warnings off the standard output. */
int hvd_ucx_create(const struct hvd_net_handlers *handlers, struct hvd_ucx **out,
                   struct hvd_error *err);

/* What other ranks need to connect; borrowed, valid until destroy. */
void hvd_ucx_address(const struct hvd_ucx *ucx, const void **address, size_t *bytes);

int hvd_ucx_version(void); /* 11301: 1.13.1; 0 in a build without it */

#endif
