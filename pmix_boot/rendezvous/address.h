/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the rendezvous service and the key that opens it: the value of
 * HVD_RENDEZVOUS, "HOST:PORT:KEY" with the key in hexadecimal digits. */
#ifndef HVD_RENDEZVOUS_ADDRESS_H
#define HVD_RENDEZVOUS_ADDRESS_H

#include <stdint.h>

#include "pmix_boot/rendezvous/channel.h"

struct hvd_rendezvous_address {
    /* An IPv4 or IPv6 address, or a name; several of them separated by commas; or the
     * path of a socket. */
    char host[264];
    char port[8];
    unsigned char key[HVD_CHANNEL_KEY_BYTES];
};

#define HVD_RENDEZVOUS_TEXT_BYTES (264 + 8 + 2 * HVD_CHANNEL_KEY_BYTES + 1)

/* Returns HVD_ERR_ARG if the text is not an address; err does not repeat the key. */
int hvd_rendezvous_address_parse(const char *text, struct hvd_rendezvous_address *out,
                                 struct hvd_error *err);

/* Connects to the first host that listens, trying again until the deadline
 * (hvd_clock_ms). Returns a descriptor, or HVD_ERR_NET with an explanation. */
int hvd_rendezvous_address_connect(const struct hvd_rendezvous_address *address,
                                   int64_t deadline_ms, struct hvd_error *err);

#endif
