/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose size and bytes follow from who sends which to whom: both ends know
 * them. */
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

/* What its bytes are made of. */
uint64_t letter_key(struct letter letter, unsigned seed);

/* 1 B to 8 MB, as many of each magnitude. */
size_t letter_bytes(struct letter letter, unsigned seed);

void letter_fill(char *data, size_t bytes, uint64_t key);
bool letter_is_filled(const char *data, size_t bytes, uint64_t key);

#endif
