/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose size and bytes are computed from their sender, receiver, channel and
 * number. */
#include "tests/collectives/transport/net/letter.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ (x >> 33);
}

uint64_t letter_key(struct letter letter, unsigned seed)
{
    return mix(seed + 1000003u * (uint64_t)letter.from + 10007u * (uint64_t)letter.to +
               101u * (uint64_t)letter.channel + (uint64_t)letter.number);
}

size_t letter_bytes(struct letter letter, unsigned seed)
{
    uint64_t key = letter_key(letter, seed);
    unsigned magnitude = (unsigned)(key % 24);

    return ((size_t)1 << magnitude) +
           (size_t)((key >> 8) & (((size_t)1 << magnitude) - 1));
}

void letter_fill(char *data, size_t bytes, uint64_t key)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (char)(key + i * 7 + (i >> 12));
    }
}

bool letter_is_filled(const char *data, size_t bytes, uint64_t key)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != (char)(key + i * 7 + (i >> 12))) {
            return false;
        }
    }
    return true;
}
