/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a transport, which moves fragments between nodes: UCX
 * (ucx/ucx_transport.c) or TCP (net_tcp.h). */
#ifndef HVD_NET_TRANSPORT_H
#define HVD_NET_TRANSPORT_H

#include "collectives/transport/net/net_flow.h"

/* Callbacks of a transport. The transport calls them only from progress and arm, except
 * `sent`, which send may also call. */
struct hvd_net_handlers {
    void *context;
    /* Returns HVD_INPROGRESS if it keeps the data, which requires arrival->release; else
     * 0. */
    int (*arrived)(void *context, const struct hvd_net_flow_arrival *arrival);
    void (*sent)(void *context, struct hvd_net_fragment *fragment, int status);
    /* Called when a transfer that fetch started has ended. */
    void (*fetched)(void *context, struct hvd_net_op *op, int status);
    /* Called when the connection to a peer has failed. peer is the argument of open;
     * reason is valid until the transport is destroyed. Called at most once per peer;
     * send no more to this peer. */
    void (*failed)(void *context, void *peer, const char *reason);
};

struct hvd_net_transport {
    /* Starts to connect to a rank at this address. */
    int (*open)(void *self, int rank, const void *address, size_t bytes, void *peer,
                void **endpoint);
    /* Closes a failed endpoint. progress then reports its fragments as sent, with a
     * failure. */
    void (*close)(void *self, void *endpoint);
    /* Returns 0 if sent, HVD_INPROGRESS if `sent` will follow, or a negative status if
     * the fragment will not be sent. */
    int (*send)(void *self, void *endpoint, struct hvd_net_fragment *fragment);
    /* Copies the bytes of an offer to op->data, which is device memory. The offer then
     * belongs to the transport again. Returns 0 if done, HVD_INPROGRESS if `fetched` will
     * follow, or a failure. */
    int (*fetch)(void *self, void *offer, struct hvd_net_op *op);
    bool (*has_cuda)(const void *self);
    /* Returns the number of events handled. */
    int (*progress)(void *self);
    /* These do the same as hvd_net_fd and hvd_net_arm. */
    int (*fd)(const void *self);
    int (*arm)(void *self);
    /* Closes without waiting for peers and drops operations under way. NULL is
     * allowed. */
    void (*destroy)(void *self);
};

#endif
