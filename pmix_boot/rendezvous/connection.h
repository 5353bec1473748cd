/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to the rendezvous service. A peer that does not prove in time that it has
 * the job's key loses it. */
#ifndef HVD_RENDEZVOUS_CONNECTION_H
#define HVD_RENDEZVOUS_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/rendezvous/channel.h"
#include "pmix_boot/rendezvous/message.h"

enum {
    /* Ranks send their first message at once. The service closes a connection on which
     * nothing has arrived within this time. */
    HVD_CONNECTION_GREETING_MS = 5000,
};

struct hvd_connection {
    struct hvd_channel *channel;
    int64_t since_ms;
    uint64_t number; /* position in the order of arrival */
    bool is_proven; /* the peer has proved that it has the key */
    bool is_member; /* the peer is in the roster, by its descriptor */
    bool has_asked; /* the peer waits for a note that no rank has posted yet */
    uint32_t subject; /* the subject of that note */
    bool watches; /* the peer wants to know of ranks that end before init */
    bool is_over;
    uint64_t join_number; /* of the last join */
    char host[256];
    struct hvd_rendezvous_process process;
    void *card; /* [card_bytes], owned */
    size_t card_bytes;
};

/* Closes the channel and frees the card. */
void hvd_connection_finish(struct hvd_connection *connection);

/* Reads the host name and the card from the rest of a message. Returns 0, HVD_ERR_NET if
 * the sizes do not match the message, or HVD_ERR_NOMEM. */
int hvd_connection_take_card(struct hvd_connection *connection, const char *data,
                             size_t bytes, uint32_t host_bytes, uint64_t card_bytes);

/* Returns whether the peer should have proved by now that it has the key. */
bool hvd_connection_is_late(const struct hvd_connection *connection, int64_t now_ms);

/* Counts the connections whose peers have not proved that they have the key, and returns
 * the one to drop first: the oldest that has sent no header, because a rank sends one at
 * once; else the oldest. NULL if there are none. */
struct hvd_connection *hvd_connection_least_stranger(struct hvd_connection *connections,
                                                     size_t count, size_t *strangers);

#endif
