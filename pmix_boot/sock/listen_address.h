/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses at which a rank listens for ranks of other nodes, from the user's
 * variables. */
#ifndef HVD_LISTEN_ADDRESS_H
#define HVD_LISTEN_ADDRESS_H

#include "pmix_boot/sock/socket.h"

/* Returns the network interfaces that the user has chosen, a comma-separated list; NULL:
 * all. Valid until the environment changes. */
const char *hvd_listen_interfaces(void);

/* Writes the addresses of the chosen interfaces and the range of ports. If no interface
 * is chosen, the list is empty, which means all addresses of this machine. Returns
 * HVD_ERR_ARG if an interface has no address or HVD_PORT_RANGE is not a range. */
int hvd_listen_address(struct hvd_socket_address *out, struct hvd_error *err);

#endif
