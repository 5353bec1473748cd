/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/sock/listen_address.h"

#include <stddef.h>
#include <stdlib.h>

#include "gpu_binding/base/env.h"

static const char *find_value(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

const char *hvd_listen_interfaces(void)
{
    const char *names = find_value(HVD_ENV_IFACE);

    if (names == NULL) {
        names = find_value(HVD_ENV_GLOO_IFACE);
    }
    if (names == NULL) {
        names = find_value(HVD_ENV_UCX_NET_DEVICES);
        names = names != NULL && hvd_interfaces_are(names) ? names : NULL;
    }
    return names;
}

int hvd_listen_address(struct hvd_socket_address *out, struct hvd_error *err)
{
    const char *names = hvd_listen_interfaces();
    struct hvd_socket_address address = {0};
    int status = hvd_port_range_parse(getenv(HVD_ENV_PORT_RANGE), &address.ports, err);

    if (status == 0 && names != NULL) {
        status = hvd_interfaces_list(names, address.addresses, HVD_SOCKET_ADDRESSES,
                                     &address.count, err);
    }
    if (status == 0) {
        *out = address;
    }
    return status;
}
