/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the key that a message carries as proof that it belongs to this job. */
#include "collectives/transport/net/net_key.h"

#include <sodium.h>
#include <string.h>

#include "collectives/transport/net/net.h"

/* Input of the hash. `purpose` separates this key from others derived from the secret. */
struct subject {
    char purpose[16];
    int32_t from;
    int32_t to;
};

uint64_t hvd_net_key(const unsigned char *secret, int from, int to)
{
    const struct subject subject = {"hvd net message", from, to};
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint64_t key;

    crypto_generichash(hash, sizeof(hash), (const unsigned char *)&subject,
                       sizeof(subject), secret, HVD_NET_SECRET_BYTES);
    memcpy(&key, hash, sizeof(key));
    return key;
}
