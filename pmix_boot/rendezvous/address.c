/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/address.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/clock.h"
#include "pmix_boot/sock/socket.h"

/* Time to connect to one of several hosts in the first round; it doubles in each round. A
 * host that does not answer must not use up the time of the others. */
static const int64_t first_share_ms = 500;

static const int pause_ms = 50;

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

static int parse_key(const char *text, unsigned char *key)
{
    if (strlen(text) != (size_t)2 * HVD_CHANNEL_KEY_BYTES) {
        return HVD_ERR_ARG;
    }
    for (size_t i = 0; i < HVD_CHANNEL_KEY_BYTES; i++) {
        int high = digit(text[2 * i]);
        int low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return HVD_ERR_ARG;
        }
        key[i] = (unsigned char)(16 * high + low);
    }
    return 0;
}

/* Splits the text from its end, since a host may contain colons. */
static int split_address(const char *text, struct hvd_rendezvous_address *out)
{
    const char *key = strrchr(text, ':');
    const char *port = key;

    while (port != NULL && port > text && port[-1] != ':') {
        port--;
    }
    if (port == NULL || port <= text + 1 || port == key ||
        (size_t)(key - port) >= sizeof(out->port) ||
        (size_t)(port - 1 - text) >= sizeof(out->host)) {
        return HVD_ERR_ARG;
    }
    snprintf(out->host, sizeof(out->host), "%.*s", (int)(port - 1 - text), text);
    snprintf(out->port, sizeof(out->port), "%.*s", (int)(key - port), port);
    if (out->port[strspn(out->port, "0123456789")] != '\0') {
        return HVD_ERR_ARG;
    }
    return parse_key(key + 1, out->key);
}

int hvd_rendezvous_address_parse(const char *text, struct hvd_rendezvous_address *out,
                                 struct hvd_error *err)
{
    struct hvd_rendezvous_address address;

    if (split_address(text, &address) < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "HVD_RENDEZVOUS is not HOST:PORT:KEY, as hvdrun and srun "
                        "--hvd set it: start the job with one of them");
    }
    *out = address;
    return 0;
}

/* Tries each host once. */
static int connect_any(const struct hvd_rendezvous_address *address, int64_t share_ms,
                       int64_t deadline_ms, struct hvd_error *cause)
{
    char hosts[sizeof(address->host)];
    char *rest = hosts;
    int fd = HVD_ERR_NET;

    snprintf(hosts, sizeof(hosts), "%s", address->host);
    while (rest != NULL && fd < 0) {
        const char *host = strsep(&rest, ",");
        const int64_t until_ms = hvd_clock_ms() + share_ms;

        fd = hvd_socket_connect_host(
            host, address->port, until_ms < deadline_ms ? until_ms : deadline_ms, cause);
    }
    return fd;
}

int hvd_rendezvous_address_connect(const struct hvd_rendezvous_address *address,
                                   int64_t deadline_ms, struct hvd_error *err)
{
    struct hvd_error cause;
    int fd;

    if (address->host[0] == '/' || strchr(address->host, ',') == NULL) {
        fd = hvd_socket_connect_host(address->host, address->port, deadline_ms, &cause);
    } else {
        int64_t share_ms = first_share_ms;

        while ((fd = connect_any(address, share_ms, deadline_ms, &cause)) < 0 &&
               hvd_clock_ms() + pause_ms < deadline_ms) {
            poll(NULL, 0, pause_ms);
            share_ms *= 2;
        }
    }
    return fd >= 0
               ? fd
               : hvd_fail(err, HVD_ERR_NET,
                          "cannot reach the rendezvous service at %s: %s; is the srun or "
                          "hvdrun that started the job still running, and may this node "
                          "connect to it?",
                          address->host, cause.text);
}
