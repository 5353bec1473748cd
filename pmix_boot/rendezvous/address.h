/* SPDX-License-Identifier: Apache-2.0 */
/* Where the rendezvous service is, and the key that opens it: the value of HVD_ELASTIC and
 * HVD_RENDEZVOUS, "HOST:PORT:KEY" with the key in hexadecimal digits. Pure. */
#ifndef HVD_RENDEZVOUS_ADDRESS_H
#define HVD_RENDEZVOUS_ADDRESS_H

#include "pmix_boot/rendezvous/channel.h"

struct hvd_rendezvous_address {
    char host[64]; /* a number, IPv4 or IPv6, or a name */
    char port[8];
    unsigned char key[HVD_CHANNEL_KEY_BYTES];
};

#define HVD_RENDEZVOUS_TEXT_BYTES (64 + 8 + 2 * HVD_CHANNEL_KEY_BYTES + 1)

/* HVD_ERR_ARG when the text is none; the key is not repeated in err. */
int hvd_rendezvous_address_parse(const char *text, struct hvd_rendezvous_address *out,
                                 struct hvd_error *err);

#endif
