/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets of this process, to find those that UCX opens. */
#ifndef HVD_NET_LISTENERS_H
#define HVD_NET_LISTENERS_H

#include <stddef.h>

enum {
    HVD_NET_LISTENERS = 128
};

struct hvd_net_listeners {
    int fds[HVD_NET_LISTENERS];
    int count;
};

/* All of TCP, as far as there is room, by /proc/self/fd. */
void hvd_net_listeners_find(struct hvd_net_listeners *out);

/* Leaves those that were not there before and whose port stands in UCX's address: other threads may
 * open sockets too. */
void hvd_net_listeners_keep_ucx(struct hvd_net_listeners *listeners,
                                const struct hvd_net_listeners *before,
                                const void *address, size_t bytes);

/* Ends the connections to these sockets, accepted or not; nobody will read what came over them. */
void hvd_net_listeners_clear(const struct hvd_net_listeners *listeners);

#endif
