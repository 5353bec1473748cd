/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the processes of the stand-in for NCCL by shared memory, which they find by a
 * name. */
#ifndef FAKE_LINK_H
#define FAKE_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_MOST_RANKS = 16,
    FAKE_CHUNK = 64 << 10,
    FAKE_BOX = 4 << 10,
    FAKE_NAME = 128,
    FAKE_PLACE = 96,
};

/* The data that a rank writes for the other ranks to read. */
struct fake_place {
    _Atomic uint64_t phase; /* number of barriers that it has reached */
    uint64_t call; /* the call that it is about to make, for comparison */
    char gpu[FAKE_PLACE]; /* its host and device */
    char chunk[FAKE_CHUNK];
};

/* Carries messages from one rank to another. */
struct fake_box {
    _Atomic size_t bytes; /* 0: empty */
    char data[FAKE_BOX];
};

struct fake_shared {
    _Atomic int joined;
    struct fake_place places[FAKE_MOST_RANKS];
    struct fake_box boxes[FAKE_MOST_RANKS][FAKE_MOST_RANKS];
};

struct fake_link {
    struct fake_shared *shared;
    char name[FAKE_NAME];
    int rank;
    int size;
    uint64_t phase;
    _Atomic bool is_aborted;
};

/* Opens the link that has this name. gpu: this rank's host and device. Returns 0 or
 * -1. */
int fake_link_open(struct fake_link *link, const char *name, int rank, int size,
                   const char *gpu);

/* Returns the first rank whose GPU another rank also has, -1 if there is none. Call after
 * fake_link_meet. */
int fake_link_duplicate(const struct fake_link *link);
void fake_link_close(struct fake_link *link);

/* fake_link_meet waits until all ranks have opened the link, fake_link_barrier until all
 * have called it. Both return false if the link is aborted. Until then they also wait for
 * ranks that have died. */
bool fake_link_meet(struct fake_link *link);
bool fake_link_barrier(struct fake_link *link);

/* A barrier; returns false also if the ranks pass different numbers. */
bool fake_link_agree(struct fake_link *link, uint64_t call);

void fake_link_pause(unsigned turn); /* pauses between two polls */

#endif
