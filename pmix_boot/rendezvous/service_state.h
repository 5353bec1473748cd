/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the rendezvous service. service.c owns it, except for `answers` and
 * `dropped`, which belong to service_step.c. */
#ifndef HVD_SERVICE_STATE_H
#define HVD_SERVICE_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/rendezvous/answers.h"
#include "pmix_boot/rendezvous/board.h"
#include "pmix_boot/rendezvous/connection.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/roster.h"

struct hvd_rendezvous_service_config;

struct hvd_service {
    const struct hvd_rendezvous_service_config *config;
    struct hvd_roster roster;
    struct hvd_board board;
    struct hvd_answers answers;
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
