/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP port that is reserved for one program for as long as a job runs. */
#ifndef HVD_HELD_PORT_H
#define HVD_HELD_PORT_H

#include <stdint.h>

#include "pmix_boot/sock/port_range.h"

/* Binds *fd to *port, one of `ports`, on all addresses, without listening. While the
 * socket is open, the kernel does not give the port to sockets that ask for any port, and
 * a program that binds to this number with SO_REUSEADDR, as stores of torch.distributed
 * do, can listen on it. The socket is closed on exec. */
int hvd_held_port_open(struct hvd_port_range ports, int *fd, uint16_t *port,
                       struct hvd_error *err);

#endif
