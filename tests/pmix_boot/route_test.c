/* SPDX-License-Identifier: Apache-2.0 */
/* The address that a host uses towards another one. */
#include "pmix_boot/route.h"

#include <string.h>

#include "tests/tap.h"

static void test_loopback(const char *peer)
{
    struct hvd_route route;
    struct hvd_error err = {0};
    int status = hvd_route_find(peer, &route, &err);

    if (status == HVD_ERR_NET) {
        tap_skip("a host reaches itself over loopback", err.text);
        return;
    }
    tap_ok(status == 0 && strcmp(route.address, peer) == 0 &&
               strcmp(route.interface, "lo") == 0,
           "%s reaches itself over loopback", peer);
}

static void refuses(const char *peer)
{
    struct hvd_route route = {.address = "kept"};
    struct hvd_error err = {0};

    tap_ok(hvd_route_find(peer, &route, &err) == HVD_ERR_ARG &&
               strstr(err.text, "expected an IP address") != NULL &&
               strcmp(route.address, "kept") == 0,
           "'%s' is not an address", peer);
}

int main(void)
{
    test_loopback("127.0.0.1");
    test_loopback("::1");
    refuses("");
    refuses("localhost");
    refuses("10.0.0");
    return tap_done();
}
