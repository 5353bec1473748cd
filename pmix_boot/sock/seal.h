/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticates the messages of one direction of a connection by a tag for each, with a
 * key that only the two ends have. The tag covers the message's number, so that no
 * message can be changed, left out, repeated or moved. Pure.
 *
 *   tag = SipHash-128(key 1, number | front | SipHash-128(key 2, payload))
 *
 * The front is the message's header; the payload need not follow it in memory. SipHash is
 * a MAC of 128 bits that takes 40 ns for a front (libsodium's poly1305 with a fresh key:
 * 170 ns, BLAKE2b: 280 ns). */
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
    /* number of the next message; the owner of the struct increments it */
    uint64_t number;
};

/* Makes the tag of the next message. front: at most HVD_SEAL_MOST_FRONT_BYTES. Without a
 * payload, the tag covers only the front; both ends must agree whether there is one. */
void hvd_seal_make(const struct hvd_seal *seal, const void *front, size_t front_bytes,
                   const void *payload, size_t payload_bytes,
                   unsigned char tag[HVD_SEAL_TAG_BYTES]);

/* Checks in constant time whether the tag is that of the next message. */
bool hvd_seal_is_right(const struct hvd_seal *seal, const void *front, size_t front_bytes,
                       const void *payload, size_t payload_bytes,
                       const unsigned char tag[HVD_SEAL_TAG_BYTES]);

#endif
