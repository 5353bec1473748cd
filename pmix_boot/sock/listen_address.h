/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank listens for those of other nodes, by the user's variables. */
#ifndef HVD_LISTEN_ADDRESS_H
#define HVD_LISTEN_ADDRESS_H

#include "pmix_boot/sock/socket.h"

/* The network interfaces that the user has chosen, a comma list; NULL: all. Valid until
 * the environment is changed. */
const char *hvd_listen_interfaces(void);

/* All addresses of the chosen interfaces, or of this machine if none is chosen.
 * HVD_ERR_ARG when an interface has no address or HVD_PORT_RANGE is no range. */
int hvd_listen_address(struct hvd_socket_address *out, struct hvd_error *err);

#endif
