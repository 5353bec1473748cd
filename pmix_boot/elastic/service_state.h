/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the service, shared by the files that make it up:
 *   service.c       who comes and goes, and what they say
 *   service_act.c   what the roster decides, told to those whom it concerns */
#ifndef HVD_ELASTIC_SERVICE_STATE_H
#define HVD_ELASTIC_SERVICE_STATE_H

#include <poll.h>

#include "pmix_boot/elastic/service.h"

#define HVD_SERVICE_HOST_BYTES 256

struct hvd_connection {
    struct hvd_channel *channel;
    int64_t since_ms;
    bool is_member; /* the roster knows it, by its descriptor */
    bool is_over;
    char host[HVD_SERVICE_HOST_BYTES];
    void *card;
    size_t card_bytes;
};

struct hvd_service {
    const struct hvd_service_config *config;
    struct hvd_roster roster;
    struct hvd_connection *connections;
    size_t count;
    struct pollfd *polls; /* [count + 2]: listening, orders, connections */
    char order[64]; /* a line of which not all has come */
    size_t order_bytes;
    bool is_over;
};

/* Asks the roster until it has no more to say. Returns 0 and when to ask again (-1: when
 * something has happened), or HVD_ERR_NOMEM. */
int hvd_service_act(struct hvd_service *service, int64_t *again_ms);

/* To all ranks of the running generation. */
void hvd_service_say(struct hvd_service *service, uint32_t type, const void *data,
                     size_t bytes);

#endif
