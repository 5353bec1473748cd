/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between simulated ranks: first in, first out between two ranks; a message
 * moves when the test says so, and takes what its source holds at that moment. */
#ifndef HVD_SIM_NETWORK_H
#define HVD_SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

/* One side of a message; belongs to the network, valid until that is destroyed. */
struct sim_message {
    bool is_done;
    char *data;
    size_t bytes;
    char *copy; /* of an eager send, or what a receive has of its own */
    void (*arrived)(struct sim_message *message); /* of a receive, NULL: nothing more */
    void *context; /* of arrived; freed with the message */
    struct sim_message *next; /* in its queue */
    struct sim_message *older; /* of all */
};

struct sim_network;

struct sim_network *sim_network_create(int ranks);
void sim_network_destroy(struct sim_network *network);

/* An eager send is done at once; any other, like a receive, when it is delivered. */
struct sim_message *sim_network_send(struct sim_network *network, int from, int to,
                                     char *data, size_t bytes, bool is_eager);
struct sim_message *sim_network_recv(struct sim_network *network, int from, int to,
                                     char *data, size_t bytes);

/* Receives into memory of the message's own and then calls arrived with context (taken
 * over). */
struct sim_message *sim_network_recv_by(struct sim_network *network, int from, int to,
                                        size_t bytes,
                                        void (*arrived)(struct sim_message *message),
                                        void *context);

/* Moves the oldest message of a pair if both sides have posted it. Returns 1, 0, or -1
 * when they disagree about its size. */
int sim_network_deliver(struct sim_network *network, int from, int to);

/* True when every message that was posted was delivered. */
bool sim_network_is_quiet(const struct sim_network *network);

#endif
