/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of messages on their way out, and the pool they come from. */
#ifndef HVD_NET_FRAGMENT_H
#define HVD_NET_FRAGMENT_H

#include <stddef.h>
#include <stdint.h>

struct hvd_flow;
struct hvd_net_op;

/* Goes in front of each fragment on the wire, in the byte order of the machine. */
struct hvd_net_header {
    uint32_t source; /* rank */
    uint32_t channel;
    uint32_t sequence; /* of fragments on this channel; counts those with bytes */
    uint32_t taken; /* cost of all that source has taken on this channel, modulo 2^32 */
};

/* Without bytes it only tells what was taken. */
struct hvd_net_fragment {
    struct hvd_net_header header;
    const char *data;
    size_t bytes;
    struct hvd_net_op *op;
    struct hvd_flow *flow;
    void *carrier; /* the network's own */
    struct hvd_net_fragment *next_unused;
    struct hvd_net_fragment *next_allocated;
};

/* Zeroed at first. The network may hold fragments until the end: finish frees all, used or
 * not. */
struct hvd_net_pool {
    struct hvd_net_fragment *unused;
    struct hvd_net_fragment *allocated;
    int taken; /* got and not put back */
};

/* NULL when memory is out. The contents are undefined but for the pool's own fields. */
struct hvd_net_fragment *hvd_net_pool_get(struct hvd_net_pool *pool);
void hvd_net_pool_put(struct hvd_net_pool *pool, struct hvd_net_fragment *fragment);
void hvd_net_pool_finish(struct hvd_net_pool *pool);

#endif
