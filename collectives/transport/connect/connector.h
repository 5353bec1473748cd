/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of connecting: tries the parent's addresses in turn, again and again, until
 * one of them answers with a proof that it is the parent. */
#ifndef HVD_CONNECTOR_H
#define HVD_CONNECTOR_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/connect/connect_card.h"
#include "pmix_boot/wire/handshake.h"
#include "pmix_boot/wire/link.h"

struct hvd_connector;

/* How to reach a rank. */
struct hvd_connector_target {
    int rank;
    bool is_local; /* over its unix socket, as it is on this node */
    const struct hvd_connect_card *card; /* copied */
    int own_addresses; /* how many hvd_connect_card_drop_own took out of the card */
};

/* Will connect self to its parent. The secret of self is borrowed. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_connector_create(const struct hvd_handshake_party *self,
                         const struct hvd_connector_target *parent,
                         struct hvd_connector **out);
void hvd_connector_destroy(struct hvd_connector *connector);

/* Fills in the one entry to wait for (its fd is -1 during a pause) and lowers *deadline_ms to
 * when it must step anyway. */
void hvd_connector_poll(const struct hvd_connector *connector, struct pollfd *fd,
                        int64_t *deadline_ms);

/* Goes on. Returns HVD_INPROGRESS, or 0 once: then hvd_connector_take gives the link to
 * the parent, which is protected and now the caller's, and the keys of the connection
 * unless keys is NULL. */
int hvd_connector_step(struct hvd_connector *connector, short revents, int64_t now_ms);
struct hvd_link *hvd_connector_take(struct hvd_connector *connector,
                                    struct hvd_handshake_keys *keys);

/* Its host has accepted the connection, and nothing wrong has come yet: a rank that is busy or stopped,
 * and not one that cannot be reached. */
bool hvd_connector_is_waiting(const struct hvd_connector *connector);

/* How many attempts have failed since the host last accepted a connection; since the first
 * wrong answer, if one came. */
int hvd_connector_attempts(const struct hvd_connector *connector);

/* How the last attempt failed, or better the last that got a wrong answer:
 * "10.0.0.1 port 4711: Connection refused"; or "". */
const char *hvd_connector_failure(const struct hvd_connector *connector);

#endif
