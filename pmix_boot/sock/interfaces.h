/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses under which other nodes may reach this one. */
#ifndef HVD_INTERFACES_H
#define HVD_INTERFACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "gpu_binding/base/error.h"

struct hvd_ip {
    unsigned char version; /* 4 or 6 */
    unsigned char bytes[16]; /* network order; IPv4 uses the first four, the rest is 0 */
};

/* From a socket's address, without a port; ::ffff:10.0.0.1 becomes the IPv4 address that
 * it stands for. version is 0 for other families. */
struct hvd_ip hvd_ip_of(const struct sockaddr *address);

/* Lists at most `max` different addresses of the interfaces that are up, most promising
 * first: IPv4, IPv6, IPv4 link-local, of each the fastest interface first; loopback only
 * when there is nothing else. names, a comma list or NULL, restricts them, loopback
 * included. HVD_ERR_ARG when an interface does not exist or has no address; the text
 * lists those that there are. */
int hvd_interfaces_list(const char *names, struct hvd_ip *list, int max, int *count,
                        struct hvd_error *err);

/* The addresses of this host, of all interfaces in whatever state. */
struct hvd_interfaces_own {
    struct hvd_ip *list;
    int count;
};

/* Zeroed is fine for finish, and for a host without addresses. Returns 0, HVD_ERR_SYS or
 * HVD_ERR_NOMEM. */
int hvd_interfaces_own_init(struct hvd_interfaces_own *own, struct hvd_error *err);
void hvd_interfaces_own_finish(struct hvd_interfaces_own *own);

/* Whether a connection to the address would end at this host: one of its own, loopback
 * (127.0.0.0/8, ::1), or the address that stands for none. */
bool hvd_interfaces_are_own(const struct hvd_interfaces_own *own,
                            const struct hvd_ip *ip);

/* Whether each name of a comma list is one of this host's interfaces. */
bool hvd_interfaces_are(const char *names);

/* "10.0.0.1 port 4711". text has room for 64 bytes. */
void hvd_ip_print(const struct hvd_ip *ip, uint16_t port, char *text);

#endif
