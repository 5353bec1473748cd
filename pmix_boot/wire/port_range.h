/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP ports that a job may listen on, where a firewall lets others through to no others. Needs libc
 * alone. */
#ifndef HVD_PORT_RANGE_H
#define HVD_PORT_RANGE_H

#include <stdint.h>
#include <sys/socket.h>

#include "gpu_binding/base/error.h"

struct hvd_port_range {
    uint16_t first; /* 0: any, which the kernel chooses */
    uint16_t last;
};

/* Reads "FIRST-LAST", such as "60001-63000"; NULL or an empty text is any. HVD_ERR_ARG with what is wrong
 * with the text of HVD_PORT_RANGE. */
int hvd_port_range_parse(const char *text, struct hvd_port_range *out,
                         struct hvd_error *err);

/* Binds a socket to this address, IPv4 or IPv6, and a port of the range, beginning with a random one.
 * Returns 0, or -1 with errno: EADDRINUSE where no port is free. */
int hvd_port_range_bind(int fd, struct sockaddr *address, socklen_t bytes,
                        struct hvd_port_range range);

#endif
