/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP ports that a job may listen on, where a firewall lets others through to no
 * others. Needs libc alone. */
#ifndef HVD_PORT_RANGE_H
#define HVD_PORT_RANGE_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_port_range {
    uint16_t first; /* 0: any, which the kernel chooses */
    uint16_t last;
};

/* Reads "FIRST-LAST", such as "60001-63000"; NULL or an empty text is any. HVD_ERR_ARG
 * with what is wrong with the text of HVD_PORT_RANGE. */
int hvd_port_range_parse(const char *text, struct hvd_port_range *out,
                         struct hvd_error *err);

/* Binds sockets to a port, 0 for one that the kernel chooses. Returns 0, or -1 with
 * errno: EADDRINUSE asks for another port. */
typedef int (*hvd_port_range_binder)(void *context, uint16_t port);

/* Calls bind with one port of the range after the other, beginning with a random one,
 * until it returns 0 or fails otherwise than with EADDRINUSE. Returns as bind did
 * last. */
int hvd_port_range_bind(struct hvd_port_range range, hvd_port_range_binder bind,
                        void *context);

#endif
