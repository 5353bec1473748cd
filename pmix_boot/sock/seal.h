/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticates what goes one way over a connection, with a key that only its two ends
 * have: a tag for each message. The message's number is part of the tag, so that none can
 * be changed, left out, repeated or moved. Pure.
 *
 *   tag = SipHash-128(key 1, number | front | SipHash-128(key 2, payload))
 *
 * SipHash is a MAC of 128 bits that takes 40 ns for the front of a message (libsodium's
 * poly1305 with a fresh key: 170 ns, BLAKE2b: 280 ns), and its payload need not lie
 * behind its front. */
#ifndef HVD_SEAL_H
#define HVD_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HVD_SEAL_KEY_BYTES 32
#define HVD_SEAL_TAG_BYTES 16
#define HVD_SEAL_MOST_FRONT_BYTES 40

struct hvd_seal {
    unsigned char key[HVD_SEAL_KEY_BYTES];
    uint64_t number; /* of the next message; the owner counts */
};

/* The tag of the next message. front: at most HVD_SEAL_MOST_FRONT_BYTES. Without payload
 * the tag covers the front only: the two ends must agree about that. */
void hvd_seal_make(const struct hvd_seal *seal, const void *front, size_t front_bytes,
                   const void *payload, size_t payload_bytes,
                   unsigned char tag[HVD_SEAL_TAG_BYTES]);

/* Whether the tag is that of the next message, in constant time. */
bool hvd_seal_is_right(const struct hvd_seal *seal, const void *front, size_t front_bytes,
                       const void *payload, size_t payload_bytes,
                       const unsigned char tag[HVD_SEAL_TAG_BYTES]);

#endif
