/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the control tree: owned by control.c, filled in by control_connect.c. */
#ifndef HVD_CONTROL_STATE_H
#define HVD_CONTROL_STATE_H

#include <stdbool.h>

#include "collectives/transport/connect/acceptor.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/connect/connect_card.h"
#include "collectives/transport/control/control_protocol.h"
#include "pmix_boot/sock/link.h"

struct hvd_neighbour {
    int rank;
    struct hvd_link *link; /* NULL before it is connected and after it is closed */
    bool is_watched_for_writing;
};

struct hvd_control {
    const struct hvd_boot *boot;
    /* TCP sockets, then the unix socket; none once the tree is up */
    struct hvd_acceptor_doors doors;
    int epoll_fd;
    int wake_fd; /* an eventfd in the epoll set, for work that no socket reports */
    struct hvd_connect_card card;
    int count;
    struct hvd_neighbour *neighbours; /* the parent, if any, then the children */
    int *children; /* their ranks */
    bool is_close_expected;
    bool is_aborted; /* `abort` holds the reason */
    bool is_abort_reported;
    struct hvd_control_reason abort;
};

/* Returns the index of the first child in neighbours. */
int hvd_control_first_child(const struct hvd_control *control);

/* Queues a message to one neighbour; does nothing if its link is closed. */
int hvd_control_send_to(struct hvd_control *control, struct hvd_neighbour *neighbour,
                        uint32_t type, const void *payload, size_t bytes);

/* Adds the neighbour's link to the epoll set. */
int hvd_control_watch(struct hvd_control *control, struct hvd_neighbour *neighbour);

/* Makes the next hvd_control_progress serve every link and report a pending abort. */
void hvd_control_wake(struct hvd_control *control);

/* Stores the reason, unless there already is one, and passes it on to every neighbour
 * except `source` (NULL: to all). */
void hvd_control_propagate(struct hvd_control *control,
                           const struct hvd_control_reason *abort,
                           const struct hvd_neighbour *source);

/* Writes the text about the death of a neighbour, after reading its link failed with
 * `status`. */
void hvd_control_explain_loss(const struct hvd_control *control,
                              const struct hvd_neighbour *neighbour, int status,
                              struct hvd_control_reason *abort);

/* Decodes a reason that a neighbour has passed on. Returns 0 or HVD_ERR_NET. */
int hvd_control_read_reason(const struct hvd_control *control,
                            const struct hvd_link_message *message,
                            struct hvd_control_reason *abort);

#endif
