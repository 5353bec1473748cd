/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of hvd_ucx.so. libhvd loads it only in jobs that use UCX.
 *
 * There is one worker, and one endpoint per peer. Fragments are eager active messages;
 * fragments in device memory use the rendezvous protocol. */
#ifndef HVD_UCX_MODULE_H
#define HVD_UCX_MODULE_H

#include "collectives/transport/net/net_transport.h"

#define HVD_UCX_MODULE_VERSION 1
#define HVD_UCX_MODULE_SYMBOL "hvd_ucx_module"

struct hvd_ucx;

struct hvd_ucx_settings {
    /* the node has RDMA: UCX leaves out TCP, unless the user names it in UCX_TLS */
    bool has_rdma;
    /* receives the lines that UCX would print, unless the user sets UCX_LOG_LEVEL */
    void (*log)(const char *line);
};

struct hvd_ucx_module {
    int version; /* HVD_UCX_MODULE_VERSION */
    int ucx_version; /* 11301 for 1.13.1 */
    struct hvd_net_transport transport;
    /* Opens UCX with the user's configuration (UCX_*). Leaves signal handlers as they
     * were before UCX was loaded, and keeps UCX's warnings off standard output. */
    int (*create)(const struct hvd_net_handlers *handlers,
                  const struct hvd_ucx_settings *settings, struct hvd_ucx **out,
                  struct hvd_error *err);
    /* Returns the address that other ranks need to connect; borrowed, valid until the
     * transport is destroyed. */
    void (*address)(const struct hvd_ucx *ucx, const void **address, size_t *bytes);
};

/* Loads the module once, from HVD_UCX_MODULE or from the directory of libhvd; it is never
 * unloaded. If that fails, returns NULL and puts the reason into err. Any thread. */
const struct hvd_ucx_module *hvd_ucx_load(struct hvd_error *err);

#endif
