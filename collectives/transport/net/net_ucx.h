/* SPDX-License-Identifier: Apache-2.0 */
/* UCX as the net uses it: one worker, endpoints, fragments as eager active messages, those of
 * device memory by rendezvous. */
#ifndef HVD_NET_UCX_H
#define HVD_NET_UCX_H

#include "collectives/transport/net/net_flow.h"
#include "collectives/transport/net/net_listeners.h"

struct hvd_ucx;

/* What comes from UCX, always during hvd_ucx_progress, or hvd_ucx_send for `sent`. */
struct hvd_ucx_handlers {
    void *context;
    /* Returns HVD_INPROGRESS when it keeps data (arrival->release is set), else 0. */
    int (*arrived)(void *context, const struct hvd_net_flow_arrival *arrival);
    void (*sent)(void *context, struct hvd_net_fragment *fragment, int status);
    /* What hvd_ucx_fetch began has ended. */
    void (*fetched)(void *context, struct hvd_net_op *op, int status);
    /* peer as given to hvd_ucx_open; reason is static text. Called once, send no more. */
    void (*failed)(void *context, void *peer, const char *reason);
};

/* Opens UCX with what the user configured (UCX_*). Leaves signal handlers as they were before
 * UCX was loaded, and UCX's warnings off the standard output. */
int hvd_ucx_create(const struct hvd_ucx_handlers *handlers, struct hvd_ucx **out,
                   struct hvd_error *err);

/* Closes without waiting for peers; what was under way is dropped. NULL is fine. */
void hvd_ucx_destroy(struct hvd_ucx *ucx);

/* Its listening sockets, which stay UCX's; none where it uses no TCP. */
const struct hvd_net_listeners *hvd_ucx_listeners(const struct hvd_ucx *ucx);

void hvd_ucx_address(const struct hvd_ucx *ucx, const void **address, size_t *bytes);

/* Connects, in the background, to the worker at address. */
int hvd_ucx_open(struct hvd_ucx *ucx, const void *address, void *peer, void **endpoint);

/* Ends a failed endpoint; its fragments are reported as sent, with a failure, by progress. */
void hvd_ucx_close(struct hvd_ucx *ucx, void *endpoint);

/* 0: sent; HVD_INPROGRESS: `sent` follows; negative: never sent. */
int hvd_ucx_send(struct hvd_ucx *ucx, void *endpoint, struct hvd_net_fragment *fragment);

/* Brings an arrival that is an offer to op->data, which is device memory; the offer is UCX's
 * again. 0: done; HVD_INPROGRESS: `fetched` follows; or a failure. */
int hvd_ucx_fetch(struct hvd_ucx *ucx, void *offer, struct hvd_net_op *op);

bool hvd_ucx_has_cuda(const struct hvd_ucx *ucx);
int hvd_ucx_version(void); /* 11301: 1.13.1 */

int hvd_ucx_progress(struct hvd_ucx *ucx);
int hvd_ucx_fd(const struct hvd_ucx *ucx);
int hvd_ucx_arm(struct hvd_ucx *ucx);

#endif
