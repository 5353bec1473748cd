/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between simulated ranks. From one rank to another, they arrive in the order in
 * which they were sent. The test decides when a message is delivered. The bytes are
 * copied at that moment; those of an eager send, when it is posted. */
#ifndef HVD_SIM_NETWORK_H
#define HVD_SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

/* One side of a message. The network owns it until the network is destroyed. */
struct sim_message {
    bool is_done;
    char *data;
    size_t bytes;
    /* the bytes of an eager send, or the memory of a receive made by
     * sim_network_recv_by */
    char *copy;
    /* function that a receive calls when its message has arrived, or NULL */
    void (*arrived)(struct sim_message *message);
    void *context; /* context of the function `arrived`; freed with the message */
    struct sim_message *next; /* the next message in its queue */
    /* the previous one of all messages, for their destruction */
    struct sim_message *older;
};

struct sim_network;

struct sim_network *sim_network_create(int ranks);
void sim_network_destroy(struct sim_network *network);

/* Post a send or a receive. An eager send completes at once; a receive and other sends
 * complete when the message is delivered. */
struct sim_message *sim_network_send(struct sim_network *network, int from, int to,
                                     char *data, size_t bytes, bool is_eager);
struct sim_message *sim_network_recv(struct sim_network *network, int from, int to,
                                     char *data, size_t bytes);

/* Posts a receive into memory that it allocates. When the message has arrived, it calls
 * arrived(). The network frees context. */
struct sim_message *sim_network_recv_by(struct sim_network *network, int from, int to,
                                        size_t bytes,
                                        void (*arrived)(struct sim_message *message),
                                        void *context);

/* Moves the oldest message of a pair if both sides have posted it. Returns 1 if it has, 0
 * if not, and -1 if they disagree about its size. */
int sim_network_deliver(struct sim_network *network, int from, int to);

/* Whether every message that was posted was delivered. */
bool sim_network_is_quiet(const struct sim_network *network);

#endif
