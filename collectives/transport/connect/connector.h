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

/* Will connect self to parent, whose card is copied; is_local: over the unix socket, as both are on
 * one node. The secret of self is borrowed. Returns 0 or HVD_ERR_NOMEM. */
int hvd_connector_create(const struct hvd_handshake_party *self, int parent,
                         bool is_local, const struct hvd_connect_card *card,
                         struct hvd_connector **out);
void hvd_connector_destroy(struct hvd_connector *connector);

/* Fills in the one entry to wait for (its fd is -1 during a pause) and lowers *deadline_ms to
 * when it must step anyway. */
void hvd_connector_poll(const struct hvd_connector *connector, struct pollfd *fd,
                        int64_t *deadline_ms);

/* Goes on. Returns HVD_INPROGRESS, or 0 once with the link to the parent, now the caller's. */
int hvd_connector_step(struct hvd_connector *connector, short revents, int64_t now_ms,
                       struct hvd_link **link);

/* Its host has accepted the connection, and nothing wrong has come yet: a rank that is busy or stopped,
 * and not one that cannot be reached. */
bool hvd_connector_is_waiting(const struct hvd_connector *connector);

/* How the last attempt failed, or better the last that got a wrong answer:
 * "10.0.0.1 port 4711: Connection refused"; or "". */
const char *hvd_connector_failure(const struct hvd_connector *connector);

#endif
