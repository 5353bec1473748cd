/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses at which other nodes may reach this one. */
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

/* Takes the IP address from a socket address. ::ffff:10.0.0.1 becomes the IPv4 address
 * that it stands for. version is 0 for other families. */
struct hvd_ip hvd_ip_of(const struct sockaddr *address);

/* Lists at most `max` different addresses of the interfaces that are up: first IPv4, then
 * IPv6, then IPv4 link-local, each with the fastest interface first. Loopback is listed
 * only if there is nothing else. `names`, a comma-separated list or NULL, selects
 * interfaces; it may name loopback, too. Returns HVD_ERR_ARG if an interface does not
 * exist or has no address; the error lists those that have one. */
int hvd_interfaces_list(const char *names, struct hvd_ip *list, int max, int *count,
                        struct hvd_error *err);

/* All addresses of this host, whether their interfaces are up or not. */
struct hvd_interfaces_own {
    struct hvd_ip *list;
    int count;
};

/* Lists the addresses of this host. Returns 0, HVD_ERR_SYS or HVD_ERR_NOMEM. A zeroed
 * struct is an empty list, which finish accepts. */
int hvd_interfaces_own_init(struct hvd_interfaces_own *own, struct hvd_error *err);
void hvd_interfaces_own_finish(struct hvd_interfaces_own *own);

/* Returns whether a connection to the address would end at this host: one of its own
 * addresses, loopback (127.0.0.0/8, ::1), or the unspecified address. */
bool hvd_interfaces_are_own(const struct hvd_interfaces_own *own,
                            const struct hvd_ip *ip);

/* Returns whether each name of a comma-separated list is an interface of this host. */
bool hvd_interfaces_are(const char *names);

/* Prints "10.0.0.1 port 4711". text has room for 64 bytes. */
void hvd_ip_print(const struct hvd_ip *ip, uint16_t port, char *text);

#endif
