/* SPDX-License-Identifier: Apache-2.0 */
/* The network by which this host reaches another one. */
#ifndef HVD_ROUTE_H
#define HVD_ROUTE_H

#include "gpu_binding/base/error.h"

struct hvd_route {
    char address[64]; /* of this host, as text */
    char interface[64]; /* that has the address */
};

/* Asks the kernel which of this host's addresses a connection to peer, an IPv4 or IPv6 address as
 * text, would have. Sends nothing. HVD_ERR_ARG if peer is no address, HVD_ERR_NET if there is no
 * route to it. */
int hvd_route_find(const char *peer, struct hvd_route *route, struct hvd_error *err);

#endif
