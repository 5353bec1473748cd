/* SPDX-License-Identifier: Apache-2.0 */
/* Messages up and down the tree of ranks (tree.h), by the fastest transport to each
 * neighbour:
 *
 *   leaders of nodes   hvd_control: sockets
 *   ranks of a node    hvd_mail: the memory that they share
 *
 * Messages between two neighbours arrive in the order in which they were sent, because
 * each pair uses one transport. The sockets between the ranks of a node stay: they
 * tell which rank died.
 *
 * The last message before connections close is sent with hvd_control_send_down: a
 * socket that closes before the mail was read would look like a death.
 *
 * Threads: one at a time per uplink. */
#ifndef HVD_UPLINK_H
#define HVD_UPLINK_H

#include <stdbool.h>

#include "collectives/transport/control/control.h"

/* Types of messages. Each belongs to one part of the runtime; listed here, so that none is given twice. */
enum hvd_message {
    HVD_MESSAGE_REPORTS = 1, /* up */
    HVD_MESSAGE_DECISIONS, /* down */
    HVD_MESSAGE_ADDRESS, /* up: rank and network address of one rank */
    HVD_MESSAGE_ADDRESSES, /* down: those of all ranks */
    HVD_MESSAGE_SHUTDOWN, /* up: a rank wants to leave; down: no decision comes after this */
    HVD_MESSAGE_DRAINED, /* up: this subtree has run all its batches */
    HVD_MESSAGE_CLOSE, /* down: all have; connections may close */
    HVD_MESSAGE_STRAGGLERS, /* up: who was late, in a window of batches */
    HVD_MESSAGE_TRACE_START, /* down: a timeline of all ranks begins; timeline_ranks.c */
    HVD_MESSAGE_TRACE_STOP, /* down: it ends */
    HVD_MESSAGE_TRACE, /* up: a rank's part of it */
    HVD_MESSAGE_CLOCK_ASK, /* to the parent: what time is it there? clock_sync.h */
    HVD_MESSAGE_CLOCK_ANSWER, /* to one child */
};

struct hvd_mail;
struct hvd_uplink;

/* All is borrowed until destroy. */
struct hvd_uplink_config {
    struct hvd_control
        *control; /* connected; its messages are the uplink's from now on */
    const struct hvd_layout *layout;
    int rank;
    struct hvd_mail *mail; /* its control mail is the uplink's from now on */
};

struct hvd_uplink_event {
    enum {
        HVD_UPLINK_MESSAGE, /* from, type, payload, bytes */
        HVD_UPLINK_ABORT, /* rank, text: why the job ends; as in control.h */
    } kind;
    int from; /* a child's index in the order of hvd_tree_children, or HVD_UPLINK_PARENT */
    uint32_t type;
    const void *payload; /* borrowed, valid in the handler only; aligned to 8 */
    size_t bytes;
    int rank;
    const char *text;
};

#define HVD_UPLINK_PARENT HVD_CONTROL_PARENT

/* May send, and call hvd_control_abort and hvd_control_expect_close. */
typedef void (*hvd_uplink_handler)(void *context, const struct hvd_uplink_event *event);

/* The caller owns *out. */
int hvd_uplink_create(const struct hvd_uplink_config *config, struct hvd_uplink **out,
                      struct hvd_error *err);
void hvd_uplink_destroy(struct hvd_uplink *uplink); /* NULL is fine */

int hvd_uplink_children(const struct hvd_uplink *uplink); /* their number */

/* No message may be longer. */
#define HVD_UPLINK_MOST_BYTES ((size_t)64 << 20)

/* Sends a message (copied, type below 0x40000000) to the parent (rank 0:
 * HVD_ERR_STATE), or to all children. Never blocks. Returns 0, HVD_ERR_NOMEM, or
 * HVD_ERR_NET as progress_node; of one that is too long HVD_ERR_ARG: it is not sent,
 * and an error is logged that names it. */
int hvd_uplink_send_up(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                       size_t bytes);
int hvd_uplink_send_down(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes);

/* To all children on this node. */
int hvd_uplink_send_node(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes);

/* To one child, by its index, over its socket: in order with what goes to all children
 * if it is on another node, else not. */
int hvd_uplink_send_child(struct hvd_uplink *uplink, int child, uint32_t type,
                          const void *payload, size_t bytes);

/* Deliver what has come and write what waits, within the node (has nothing to do
 * unless control mail has come: hvd_mail_has_come) and over the sockets (costs a
 * system call). Return the number of events handled, or HVD_ERR_NOMEM; within the
 * node, of control mail that is not valid, HVD_ERR_NET, logged. */
int hvd_uplink_progress_node(struct hvd_uplink *uplink, hvd_uplink_handler handler,
                             void *context);
int hvd_uplink_progress_sockets(struct hvd_uplink *uplink, hvd_uplink_handler handler,
                                void *context);

#endif
