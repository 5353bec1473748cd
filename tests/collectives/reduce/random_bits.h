/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for tests of one process: the same sequence for the same seed. */
#ifndef HVD_RANDOM_BITS_H
#define HVD_RANDOM_BITS_H

#include <stdint.h>
#include <time.h>

#include "tests/tap.h"

static uint64_t random_state;

/* Begins the sequence of the test's seed. */
static void random_begin(void)
{
    random_state = 1 + (uint64_t)tap_seed((unsigned)time(NULL)) * 2654435761u;
}

/* Returns the next 64 random bits (xorshift). */
static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

#endif
