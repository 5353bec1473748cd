/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP ports on which a job may listen, for clusters whose firewall opens only some
 * ports between nodes. Needs libc alone. */
#ifndef HVD_PORT_RANGE_H
#define HVD_PORT_RANGE_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_port_range {
    uint16_t first; /* 0: the kernel chooses any port */
    uint16_t last;
};

/* Reads "FIRST-LAST", such as "60001-63000"; NULL or an empty text means any port.
 * HVD_ERR_ARG says what is wrong with HVD_PORT_RANGE. */
int hvd_port_range_parse(const char *text, struct hvd_port_range *out,
                         struct hvd_error *err);

/* Binds sockets to a port; 0: to one that the kernel chooses. Returns 0, or -1 with
 * errno. EADDRINUSE asks for another port. */
typedef int (*hvd_port_range_binder)(void *context, uint16_t port);

/* Calls bind with the ports of the range in turn, beginning with a random one, until it
 * returns 0 or an errno other than EADDRINUSE. Returns the last result of bind. */
int hvd_port_range_bind(struct hvd_port_range range, hvd_port_range_binder bind,
                        void *context);

#endif
