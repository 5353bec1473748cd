/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose size and bytes are computed from their sender, receiver, channel and
 * number, so that both sides know them. */
#ifndef HVD_TEST_LETTER_H
#define HVD_TEST_LETTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct letter {
    int from;
    int to;
    int channel;
    int number;
};

/* Returns the seed from which the bytes are computed. */
uint64_t letter_key(struct letter letter, unsigned seed);

/* Returns a size between 1 B and 16 MB; all magnitudes are equally likely. */
size_t letter_bytes(struct letter letter, unsigned seed);

void letter_fill(char *data, size_t bytes, uint64_t key);
bool letter_is_filled(const char *data, size_t bytes, uint64_t key);

#endif
