/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier of fragments to other nodes, as the net sees it: UCX (ucx/ucx_carrier.c) or
 * TCP (net_tcp.h). */
#ifndef HVD_NET_CARRIER_H
#define HVD_NET_CARRIER_H

#include "collectives/transport/net/net_flow.h"

/* What comes from a carrier, always during progress, or send for `sent`. */
struct hvd_net_handlers {
    void *context;
    /* Returns HVD_INPROGRESS when it keeps data (arrival->release is set), else 0. */
    int (*arrived)(void *context, const struct hvd_net_flow_arrival *arrival);
    void (*sent)(void *context, struct hvd_net_fragment *fragment, int status);
    /* What fetch began has ended. */
    void (*fetched)(void *context, struct hvd_net_op *op, int status);
    /* peer as given to open; reason is valid until the carrier's end. Called once, send no more. */
    void (*failed)(void *context, void *peer, const char *reason);
};

struct hvd_net_carrier {
    /* Connects, in the background, to a rank, which is at address. */
    int (*open)(void *self, int rank, const void *address, size_t bytes, void *peer,
                void **endpoint);
    /* Ends a failed endpoint; its fragments are reported as sent, with a failure, by progress. */
    void (*close)(void *self, void *endpoint);
    /* 0: sent; HVD_INPROGRESS: `sent` follows; negative: never sent. */
    int (*send)(void *self, void *endpoint, struct hvd_net_fragment *fragment);
    /* Brings an arrival that is an offer to op->data, which is device memory; the offer is the
     * carrier's again. 0: done; HVD_INPROGRESS: `fetched` follows; or a failure. */
    int (*fetch)(void *self, void *offer, struct hvd_net_op *op);
    bool (*has_cuda)(const void *self);
    /* How many events there were. */
    int (*progress)(void *self);
    /* See hvd_net_fd and hvd_net_arm. */
    int (*fd)(const void *self);
    int (*arm)(void *self);
    /* Closes without waiting for peers; what was under way is dropped. NULL is fine. */
    void (*destroy)(void *self);
};

#endif
