/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/address.h"

#include <stdio.h>
#include <string.h>

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

static int parse_key(const char *text, unsigned char *key)
{
    if (strlen(text) != 2 * HVD_CHANNEL_KEY_BYTES) {
        return HVD_ERR_ARG;
    }
    for (int i = 0; i < HVD_CHANNEL_KEY_BYTES; i++) {
        int high = digit(text[2 * i]);
        int low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return HVD_ERR_ARG;
        }
        key[i] = (unsigned char)(16 * high + low);
    }
    return 0;
}

/* From the end, since a host may have colons. */
static int split(const char *text, struct hvd_rendezvous_address *out)
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

    if (split(text, &address) < 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "HVD_ELASTIC or HVD_RENDEZVOUS is not HOST:PORT:KEY, as hvdrun and srun "
            "--hvd set it: start the job with one of them");
    }
    *out = address;
    return 0;
}
