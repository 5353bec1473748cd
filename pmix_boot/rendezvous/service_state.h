/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the rendezvous service. service.c owns it, except for `answer` and
 * `dropped`, which belong to service_step.c. */
#ifndef HVD_SERVICE_STATE_H
#define HVD_SERVICE_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/rendezvous/board.h"
#include "pmix_boot/rendezvous/connection.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/roster.h"

struct hvd_rendezvous_service_config;

/* The last FORMED of a static job. A rank whose connection is reset before it arrives
 * asks again, by the same number. */
struct hvd_service_answer {
    char *data; /* NULL: none */
    size_t bytes;
    uint64_t *numbers; /* [count], by rank */
    int count;
};

struct hvd_service {
    const struct hvd_rendezvous_service_config *config;
    struct hvd_roster roster;
    struct hvd_board board;
    struct hvd_service_answer answer;
    struct hvd_connection *connections;
    size_t count;
    uint64_t arrived; /* number of connections so far */
    /* accept nothing until then, for lack of descriptors; 0 while accepting */
    int64_t closed_until_ms;
    bool was_full; /* the lack of descriptors has been logged */
    struct pollfd *polls; /* [count + 2]: listening socket, orders, connections */
    char order[64]; /* an incomplete line */
    size_t order_bytes;
    struct hvd_rendezvous_process *dropped; /* ranks that are being killed */
    size_t dropped_count;
    bool is_over;
};

#endif
