/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of messages. */
#include "pmix_boot/sock/seal.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

static_assert(HVD_SEAL_TAG_BYTES == crypto_shorthash_siphashx24_BYTES, "a tag is a hash");
static_assert(HVD_SEAL_KEY_BYTES == 2 * crypto_shorthash_siphashx24_KEYBYTES,
              "one key for the front, one for the payload");

void hvd_seal_make(const struct hvd_seal *seal, const void *front, size_t front_bytes,
                   const void *payload, size_t payload_bytes,
                   unsigned char tag[HVD_SEAL_TAG_BYTES])
{
    const size_t number_bytes = sizeof(seal->number);
    unsigned char
        covered[sizeof(seal->number) + HVD_SEAL_MOST_FRONT_BYTES + HVD_SEAL_TAG_BYTES];
    size_t bytes = number_bytes + front_bytes;

    assert(front_bytes <= HVD_SEAL_MOST_FRONT_BYTES);
    memcpy(covered, &seal->number, number_bytes);
    memcpy(covered + number_bytes, front, front_bytes);
    if (payload_bytes > 0) {
        crypto_shorthash_siphashx24(covered + bytes, payload, payload_bytes,
                                    seal->key + crypto_shorthash_siphashx24_KEYBYTES);
        bytes += HVD_SEAL_TAG_BYTES;
    }
    crypto_shorthash_siphashx24(tag, covered, bytes, seal->key);
}

bool hvd_seal_is_right(const struct hvd_seal *seal, const void *front, size_t front_bytes,
                       const void *payload, size_t payload_bytes,
                       const unsigned char tag[HVD_SEAL_TAG_BYTES])
{
    unsigned char right[HVD_SEAL_TAG_BYTES];

    hvd_seal_make(seal, front, front_bytes, payload, payload_bytes, right);
    return sodium_memcmp(right, tag, sizeof(right)) == 0;
}
