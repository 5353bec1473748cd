/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts may open connections to UCX: a packet filter on its listening sockets.
 *
 * UCX believes whoever connects, and breaks when a stranger says the wrong thing. The kernel
 * therefore drops requests for a connection that do not come from an address of another node of
 * the job. Ranks of one node need no connection among each other, so that nobody on this node gets
 * in either. Strangers on other nodes of the job still do.
 *
 * Connections that are open pass all packets. */
#ifndef HVD_NET_FILTER_H
#define HVD_NET_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a host: IPv6, or IPv4 mapped to that (::ffff:10.0.0.1), in network byte order. */
struct hvd_net_host_address {
    uint8_t bytes[16];
};

/* Zeroed is empty. */
struct hvd_net_host_addresses {
    struct hvd_net_host_address *list;
    size_t count;
    uint64_t network; /* stands for machine and network namespace; 0: not known */
};

/* Appends all addresses of this host's interfaces but link-local ones, and finds its network.
 * Returns 0, HVD_ERR_NOMEM or HVD_ERR_SYS. */
int hvd_net_host_addresses_find(struct hvd_net_host_addresses *addresses);

/* Appends what another node has and this one has not: both have loopback, and often an address for
 * containers or virtual machines, by which processes of this node would get in. All of them if the
 * other node shares this one's network, as when one machine plays several. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_net_host_addresses_add(struct hvd_net_host_addresses *addresses,
                               const struct hvd_net_host_addresses *own,
                               const struct hvd_net_host_addresses *other);

void hvd_net_host_addresses_finish(struct hvd_net_host_addresses *addresses);

/* The filter that lets in connections from these addresses (which it sorts). When there are too
 * many for a filter, it compares the beginnings of IPv4 addresses, and lets all IPv6 ones in. Without
 * addresses it drops every packet, so that no handshake ends that began before it was attached. The
 * caller frees out->filter. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_filter_make(struct hvd_net_host_addresses *addresses, struct sock_fprog *out);

/* Whether the kernel takes it, for a listening TCP socket. */
bool hvd_net_filter_attach(const struct sock_fprog *filter, int fd);

#endif
