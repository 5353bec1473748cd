/* SPDX-License-Identifier: Apache-2.0 */
/* A tag is good for one message, at its position, with one key. */
#include "pmix_boot/sock/seal.h"

#include <string.h>

#include "tests/tap.h"

enum {
    FRONT_BYTES = HVD_SEAL_MOST_FRONT_BYTES,
    PAYLOAD_BYTES = 300,
};

static struct {
    struct hvd_seal seal;
    unsigned char front[FRONT_BYTES];
    unsigned char payload[PAYLOAD_BYTES];
    unsigned char tag[HVD_SEAL_TAG_BYTES];
} sent;

static bool is_right(void)
{
    return hvd_seal_is_right(&sent.seal, sent.front, sizeof(sent.front), sent.payload,
                             sizeof(sent.payload), sent.tag);
}

static bool any_bit_counts(void *part, size_t bytes)
{
    unsigned char *bits = part;

    for (size_t bit = 0; bit < bytes * 8; bit++) {
        bool is_still_right;

        bits[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        is_still_right = is_right();
        bits[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        if (is_still_right) {
            return false;
        }
    }
    return is_right();
}

int main(void)
{
    unsigned char other[HVD_SEAL_TAG_BYTES];

    memset(sent.front, 1, sizeof(sent.front));
    memset(sent.payload, 2, sizeof(sent.payload));
    memset(sent.seal.key, 3, sizeof(sent.seal.key));
    hvd_seal_make(&sent.seal, sent.front, sizeof(sent.front), sent.payload,
                  sizeof(sent.payload), sent.tag);
    tap_ok(is_right(), "the tag of a message is right");
    tap_ok(any_bit_counts(sent.tag, sizeof(sent.tag)),
           "a change of any bit of the tag is noticed");
    tap_ok(any_bit_counts(sent.front, sizeof(sent.front)),
           "a change of any bit of the front is noticed");
    tap_ok(any_bit_counts(sent.payload, sizeof(sent.payload)),
           "a change of any bit of the payload is noticed");
    tap_ok(any_bit_counts(sent.seal.key, sizeof(sent.seal.key)),
           "a change of any bit of the key is noticed");
    tap_ok(any_bit_counts(&sent.seal.number, sizeof(sent.seal.number)),
           "a change of the message's number is noticed, so no message can be repeated "
           "or moved");
    hvd_seal_make(&sent.seal, sent.front, sizeof(sent.front), NULL, 0, other);
    tap_ok(!hvd_seal_is_right(&sent.seal, sent.front, sizeof(sent.front), sent.payload,
                              sizeof(sent.payload), other),
           "a tag of the front alone is wrong for the message");
    return tap_done();
}
