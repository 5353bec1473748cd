/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the network by which this host reaches another one. */
#ifndef HVD_ROUTE_H
#define HVD_ROUTE_H

#include "gpu_binding/base/error.h"

struct hvd_route {
    char address[64]; /* an address of this host, as text */
    char interface[64]; /* the interface that has the address */
};

/* Asks the kernel which address of this host a connection to peer (an IPv4 or IPv6
 * address as text) would have. Sends nothing. HVD_ERR_ARG if peer is not an address,
 * HVD_ERR_NET if there is no route to it. */
int hvd_route_find(const char *peer, struct hvd_route *route, struct hvd_error *err);

#endif
