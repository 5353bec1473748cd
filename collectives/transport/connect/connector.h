/* SPDX-License-Identifier: Apache-2.0 */
/* The connecting side of a connection: tries the parent's addresses in turn, repeatedly,
 * until one answers with a proof that it is the parent. */
#ifndef HVD_CONNECTOR_H
#define HVD_CONNECTOR_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/connect/connect_card.h"
#include "pmix_boot/sock/handshake.h"
#include "pmix_boot/sock/link.h"

struct hvd_connector;

/* How to reach a rank. */
struct hvd_connector_target {
    int rank;
    bool is_local; /* the rank is on this node: use its unix socket */
    const struct hvd_connect_card *card; /* copied */
    int own_addresses; /* how many addresses hvd_connect_card_drop_own removed */
};

/* Prepares to connect self to its parent. The secret of self is borrowed. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_connector_create(const struct hvd_handshake_party *self,
                         const struct hvd_connector_target *parent,
                         struct hvd_connector **out);
void hvd_connector_destroy(struct hvd_connector *connector);

/* Fills in the one entry to wait for; its fd is -1 during a pause. Lowers *deadline_ms to
 * the time when hvd_connector_step must be called in any case. */
void hvd_connector_poll(const struct hvd_connector *connector, struct pollfd *fd,
                        int64_t *deadline_ms);

/* Continues to connect. Returns HVD_INPROGRESS, or 0 once when connected. Then
 * hvd_connector_take gives the caller the link that leads to the parent and, unless keys
 * is NULL, the keys that protect it. */
int hvd_connector_step(struct hvd_connector *connector, short revents, int64_t now_ms);
struct hvd_link *hvd_connector_take(struct hvd_connector *connector,
                                    struct hvd_handshake_keys *keys);

/* Connects anew, after hvd_connector_take: first to the address that answered, because
 * others before it may take longer than the parent waits. */
void hvd_connector_restart(struct hvd_connector *connector, int64_t now_ms);

/* Whether the host has accepted the connection and no wrong answer has arrived: then the
 * rank is busy or stopped rather than unreachable. */
bool hvd_connector_is_waiting(const struct hvd_connector *connector);

/* Returns the number of attempts that failed since the host last accepted a connection,
 * or since the first wrong answer if there was one. */
int hvd_connector_attempts(const struct hvd_connector *connector);

/* Describes the failure of the last attempt, or of the last one with a wrong answer:
 * "10.0.0.1 port 4711: Connection refused". "" if none failed. */
const char *hvd_connector_failure(const struct hvd_connector *connector);

#endif
