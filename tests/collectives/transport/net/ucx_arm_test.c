/* SPDX-License-Identifier: Apache-2.0 */
/* A message that arrives while UCX is being armed keeps the rank awake. The functions of
 * UCX below take the place of libucp's in hvd_ucx.so: adapters that give no signal for
 * such a message are rare, and tests/run.sh rdma has to emulate one. */
#include <stdio.h>
#include <stdlib.h>

#include <ucp/api/ucp.h>

#include "collectives/transport/net/net.h"
#include "gpu_binding/base/attr.h"
#include "tests/tap.h"

static bool is_armed;
static unsigned late; /* messages that come while UCX is armed */

HVD_EXPORT ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
    (void)worker;
    is_armed = true;
    return UCS_OK;
}

HVD_EXPORT unsigned ucp_worker_progress(ucp_worker_h worker)
{
    unsigned count = is_armed ? late : 0;

    (void)worker;
    late -= count;
    return count;
}

static struct hvd_net *join_alone(void)
{
    struct hvd_net *net = NULL;
    struct hvd_error err = {0};
    struct hvd_net_job job = {
        .size = 1, .host = "a", .secret = (const unsigned char[HVD_NET_SECRET_BYTES]){0}};
    const void *address;
    size_t bytes;

    if (hvd_net_create(HVD_NET_UCX, &net, &err) != 0) {
        printf("# %s\n", err.text);
        exit(1);
    }
    hvd_net_address(net, &address, &bytes);
    job.addresses = &address;
    job.bytes = &bytes;
    if (hvd_net_connect(net, &job, &err) != 0) {
        printf("# %s\n", err.text);
        exit(1);
    }
    return net;
}

int main(void)
{
    struct hvd_net *net = join_alone();

    tap_ok(hvd_net_arm(net) == 0, "a rank without messages may sleep");
    is_armed = false;
    late = 1;
    tap_ok(hvd_net_arm(net) == HVD_INPROGRESS,
           "a message that comes while UCX is armed keeps the rank awake");
    tap_ok(hvd_net_arm(net) == 0, "the next time it may sleep");
    hvd_net_destroy(net);
    return tap_done();
}
