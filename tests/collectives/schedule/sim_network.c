/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated network: a queue of sends and a queue of receives for each ordered pair
 * of ranks. */
#include "tests/collectives/schedule/sim_network.h"

#include <stdlib.h>
#include <string.h>

struct queue {
    struct sim_message *first;
    struct sim_message *last;
};

struct pair {
    struct queue sends;
    struct queue recvs;
};

struct sim_network {
    int ranks;
    int pending;
    struct pair *pairs;
    struct sim_message *newest;
};

struct sim_network *sim_network_create(int ranks)
{
    struct sim_network *network = calloc(1, sizeof(*network));

    network->ranks = ranks;
    network->pairs = calloc((size_t)(ranks * ranks), sizeof(*network->pairs));
    return network;
}

void sim_network_destroy(struct sim_network *network)
{
    while (network->newest != NULL) {
        struct sim_message *message = network->newest;

        network->newest = message->older;
        free(message->copy);
        free(message->context);
        free(message);
    }
    free(network->pairs);
    free(network);
}

static struct pair *pair_of(struct sim_network *network, int from, int to)
{
    return &network->pairs[from * network->ranks + to];
}

static struct sim_message *post(struct sim_network *network, struct queue *queue,
                                char *data, size_t bytes)
{
    struct sim_message *message = calloc(1, sizeof(*message));

    message->data = data;
    message->bytes = bytes;
    message->older = network->newest;
    network->newest = message;
    network->pending++;
    if (queue->first == NULL) {
        queue->first = message;
    } else {
        queue->last->next = message;
    }
    queue->last = message;
    return message;
}

struct sim_message *sim_network_send(struct sim_network *network, int from, int to,
                                     char *data, size_t bytes, bool is_eager)
{
    struct sim_message *message =
        post(network, &pair_of(network, from, to)->sends, data, bytes);

    if (is_eager) {
        message->copy = malloc(bytes);
        memcpy(message->copy, data, bytes);
        message->is_done = true;
    }
    return message;
}

struct sim_message *sim_network_recv(struct sim_network *network, int from, int to,
                                     char *data, size_t bytes)
{
    return post(network, &pair_of(network, from, to)->recvs, data, bytes);
}

struct sim_message *sim_network_recv_by(struct sim_network *network, int from, int to,
                                        size_t bytes,
                                        void (*arrived)(struct sim_message *message),
                                        void *context)
{
    char *copy = malloc(bytes);
    struct sim_message *message = sim_network_recv(network, from, to, copy, bytes);

    message->copy = copy;
    message->arrived = arrived;
    message->context = context;
    return message;
}

int sim_network_deliver(struct sim_network *network, int from, int to)
{
    struct pair *pair = pair_of(network, from, to);
    struct sim_message *send = pair->sends.first;
    struct sim_message *recv = pair->recvs.first;

    if (send == NULL || recv == NULL) {
        return 0;
    }
    if (send->bytes != recv->bytes) {
        return -1;
    }
    memcpy(recv->data, send->copy != NULL ? send->copy : send->data, recv->bytes);
    send->is_done = true;
    if (recv->arrived != NULL) {
        recv->arrived(recv);
    }
    recv->is_done = true;
    pair->sends.first = send->next;
    pair->recvs.first = recv->next;
    network->pending -= 2;
    return 1;
}

bool sim_network_is_quiet(const struct sim_network *network)
{
    return network->pending == 0;
}
