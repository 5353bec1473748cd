/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes to and from a rank of this node: a byte ring (byte_ring.h) for each way.
 *
 * Who has written to a rank, or has made room there, sets its bit on the board of that rank, and rings
 * it unless it is hushed. To look whether anything has come is to look at one word for 64 ranks.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_NODE_LINK_H
#define HVD_NODE_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/messages/envelope.h"
#include "collectives/transport/shm/byte_ring.h"

struct hvd_shm;

/* Of all ranks of the node: a line of words each, for their bits. */
struct hvd_node_board {
    struct hvd_shm *shm;
    char *memory; /* hvd_node_board_bytes, zero at first, on 128 */
    int local_rank; /* this one */
    int local_size;
    int words; /* of a line; 0: there are no others */
    bool is_hushed;
};

struct hvd_node_link {
    const struct hvd_node_board *board; /* NULL: not open */
    int local_rank;
    char *pair; /* the memory of both */
    struct hvd_ring_writer writer;
    struct hvd_ring_reader reader;
};

/* For the ranks of a node: the board, and what is backed when a pair first uses it. */
size_t hvd_node_board_bytes(int local_size);
size_t hvd_node_pairs_bytes(int local_size);

void hvd_node_board_init(struct hvd_node_board *board, struct hvd_shm *shm, void *memory,
                         int local_rank, int local_size);

/* Whether others ring this rank if it sleeps. A hushed one looks by itself before long, and bits are no
 * news. */
void hvd_node_board_hush(struct hvd_node_board *board, bool is_hushed);

/* Whether others have set bits: sequentially consistent, the last look before sleeping; and takes those
 * of a word. */
bool hvd_node_board_has_news(const struct hvd_node_board *board);
uint64_t hvd_node_board_take(const struct hvd_node_board *board, int word);

int hvd_node_link_open(struct hvd_node_link *link, const struct hvd_node_board *board,
                       int local_rank, struct hvd_error *err);
void hvd_node_link_close(struct hvd_node_link *link); /* zeroed is fine */

/* Writes bytes (copied), or has them wait. */
int hvd_node_link_write(struct hvd_node_link *link, const void *data, size_t bytes,
                        struct hvd_error *err);

/* Writes what waits. True if anything went out. */
bool hvd_node_link_flush(struct hvd_node_link *link, struct hvd_error *err);

/* All that has come when this begins. arrived: returns 0, or a failure that ends all. */
typedef int hvd_node_link_arrived(void *context, const struct hvd_envelope *envelope,
                                  size_t bytes);
int hvd_node_link_read(struct hvd_node_link *link, hvd_node_link_arrived *arrived,
                       void *context, struct hvd_error *err);

#endif
