/* SPDX-License-Identifier: Apache-2.0 */
/* UCX as a carrier: what hvd_ucx.so offers to libhvd, which loads it where a job uses UCX and does
 * without it elsewhere.
 *
 * One worker, endpoints, fragments as eager active messages, those of device memory by rendezvous. */
#ifndef HVD_UCX_MODULE_H
#define HVD_UCX_MODULE_H

#include "collectives/transport/net/net_carrier.h"

#define HVD_UCX_MODULE_VERSION 1
#define HVD_UCX_MODULE_SYMBOL "hvd_ucx_module"

struct hvd_ucx;

struct hvd_ucx_settings {
    bool has_rdma; /* so there is no need of TCP, unless the user names it in UCX_TLS */
    void (*log)(
        const char *line); /* what UCX would print, unless the user sets UCX_LOG_LEVEL */
};

struct hvd_ucx_module {
    int version; /* HVD_UCX_MODULE_VERSION */
    int ucx_version; /* 11301: 1.13.1 */
    struct hvd_net_carrier carrier;
    /* Opens UCX with what the user configured (UCX_*). Leaves signal handlers as they were before UCX
     * was loaded, and UCX's warnings off the standard output. */
    int (*create)(const struct hvd_net_handlers *handlers,
                  const struct hvd_ucx_settings *settings, struct hvd_ucx **out,
                  struct hvd_error *err);
    /* What other ranks need to connect; borrowed, valid until the carrier's destroy. */
    void (*address)(const struct hvd_ucx *ucx, const void **address, size_t *bytes);
};

/* The module: HVD_UCX_MODULE, else beside libhvd. Loaded once and never unloaded. Returns NULL, and the
 * reason in err, if it cannot be loaded. Any thread. */
const struct hvd_ucx_module *hvd_ucx_load(struct hvd_error *err);

#endif
