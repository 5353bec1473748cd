/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses under which other nodes may reach this one. */
#ifndef HVD_INTERFACES_H
#define HVD_INTERFACES_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_ip {
    unsigned char version; /* 4 or 6 */
    unsigned char bytes[16]; /* network order; IPv4 uses the first four */
};

/* Lists at most `max` addresses of the interfaces that are up, most promising first: IPv4,
 * IPv6, IPv4 link-local, of each the fastest interface first; loopback only when there is nothing else.
 * names, a comma list or NULL, restricts them, loopback included. HVD_ERR_ARG when an
 * interface does not exist or has no address; the text lists those that there are. */
int hvd_interfaces_list(const char *names, struct hvd_ip *list, int max, int *count,
                        struct hvd_error *err);

/* Whether each name of a comma list is one of this host's interfaces. */
bool hvd_interfaces_are(const char *names);

/* "10.0.0.1 port 4711". text has room for 64 bytes. */
void hvd_ip_print(const struct hvd_ip *ip, uint16_t port, char *text);

#endif
