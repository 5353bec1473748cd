/* SPDX-License-Identifier: Apache-2.0 */
/* The net of a build without UCX: good for one node. */
#include "collectives/transport/net/net.h"

#include <stdlib.h>

struct hvd_net {
    int unused;
};

void hvd_net_behave(void)
{
}

int hvd_net_create(struct hvd_net **out, struct hvd_error *err)
{
    struct hvd_net *net = calloc(1, sizeof(*net));

    if (net == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    *out = net;
    return 0;
}

void hvd_net_address(const struct hvd_net *net, const void **address, size_t *bytes)
{
    (void)net;
    *address = "";
    *bytes = 0;
}

int hvd_net_connect(struct hvd_net *net, const struct hvd_net_job *job,
                    struct hvd_error *err)
{
    (void)net;
    (void)job;
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "this hvd was built without UCX and cannot reach other nodes: run on "
                    "one node, or build it with meson setup -Ducx=enabled");
}

struct hvd_net_flow *hvd_net_flow_get(struct hvd_net *net, int peer, uint32_t channel)
{
    (void)net;
    (void)peer;
    (void)channel;
    return NULL;
}

void hvd_net_send(struct hvd_net_flow *flow, struct hvd_net_op *op)
{
    (void)flow;
    op->status = HVD_ERR_UNSUPPORTED;
}

void hvd_net_recv(struct hvd_net_flow *flow, struct hvd_net_op *op)
{
    hvd_net_send(flow, op);
}

bool hvd_net_has_cuda(const struct hvd_net *net)
{
    (void)net;
    return false;
}

int hvd_net_version(void)
{
    return 0;
}

void hvd_net_use_scope(struct hvd_net *net, const struct hvd_net_scope *scope)
{
    (void)net;
    (void)scope;
}

int hvd_net_progress(struct hvd_net *net, int *failed_peer)
{
    (void)net;
    if (failed_peer != NULL) {
        *failed_peer = -1;
    }
    return 0;
}

int hvd_net_fd(const struct hvd_net *net)
{
    (void)net;
    return -1;
}

int hvd_net_arm(struct hvd_net *net)
{
    (void)net;
    return 0;
}

bool hvd_net_is_sending(const struct hvd_net *net)
{
    (void)net;
    return false;
}

int hvd_net_failed_peer(const struct hvd_net *net, const char **reason)
{
    (void)net;
    if (reason != NULL) {
        *reason = NULL;
    }
    return -1;
}

void hvd_net_destroy(struct hvd_net *net)
{
    free(net);
}
