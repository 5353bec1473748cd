/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of hvd_ucx.so, which libhvd loads in jobs that use UCX and does without
 * in others.
 *
 * One worker, one endpoint per peer; fragments are eager active messages, and those in
 * device memory go by rendezvous. */
#ifndef HVD_UCX_MODULE_H
#define HVD_UCX_MODULE_H

#include "collectives/transport/net/net_transport.h"

#define HVD_UCX_MODULE_VERSION 1
#define HVD_UCX_MODULE_SYMBOL "hvd_ucx_module"

struct hvd_ucx;

struct hvd_ucx_settings {
    bool has_rdma; /* leaves out TCP, unless the user names it in UCX_TLS */
    /* gets the lines that UCX would print, unless the user sets UCX_LOG_LEVEL */
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
    /* The address that other ranks need to connect; borrowed, valid until the transport
     * is destroyed. */
    void (*address)(const struct hvd_ucx *ucx, const void **address, size_t *bytes);
};

/* Loads the module from HVD_UCX_MODULE, or from the directory of libhvd, once; it is
 * never unloaded. Returns NULL and the reason in err if that fails. Any thread. */
const struct hvd_ucx_module *hvd_ucx_load(struct hvd_error *err);

#endif
