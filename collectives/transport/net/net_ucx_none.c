/* SPDX-License-Identifier: Apache-2.0 */
/* UCX in a build without it. */
#include "collectives/transport/net/net_ucx.h"
#include "collectives/transport/net/ucx_quiet.h"

const struct hvd_net_carrier hvd_ucx_carrier = {0};

void hvd_ucx_restore_signals(void)
{
}

int hvd_ucx_create(const struct hvd_net_handlers *handlers, struct hvd_ucx **out,
                   struct hvd_error *err)
{
    (void)handlers;
    *out = NULL;
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "this hvd was built without UCX");
}

void hvd_ucx_address(const struct hvd_ucx *ucx, const void **address, size_t *bytes)
{
    (void)ucx;
    *address = NULL;
    *bytes = 0;
}

int hvd_ucx_version(void)
{
    return 0;
}
