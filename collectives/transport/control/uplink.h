/* SPDX-License-Identifier: Apache-2.0 */
/* Messages up and down the tree of ranks (tree.h), over the faster transport to each
 * neighbour:
 *
 *   leaders of nodes   hvd_control: sockets
 *   ranks of a node    hvd_mail: shared memory
 *
 * Messages between two neighbours arrive in the order in which they were sent, because
 * each pair uses one transport. The sockets between the ranks of a node stay open: they
 * show which rank died.
 *
 * The last message before connections close is sent by hvd_control_send_down: if it went
 * by mail, a socket that closes before the mail is read would look like a death.
 *
 * Threads: one at a time per uplink. */
#ifndef HVD_UPLINK_H
#define HVD_UPLINK_H

#include <stdbool.h>

#include "collectives/transport/control/control.h"

/* Message types. Each belongs to one part of the runtime; they are listed here so that no
 * number is used twice. */
enum hvd_message {
    HVD_MESSAGE_REPORTS = 1, /* up: tensors that ranks of the subtree have submitted */
    HVD_MESSAGE_DECISIONS, /* down: batches that all ranks run next */
    HVD_MESSAGE_ADDRESS, /* up: network address of one rank */
    HVD_MESSAGE_ADDRESSES, /* down: network addresses of all ranks */
    HVD_MESSAGE_SHUTDOWN, /* up: a rank wants to leave; down: no decision follows */
    HVD_MESSAGE_DRAINED, /* up: this subtree has run all its batches */
    HVD_MESSAGE_CLOSE, /* down: all ranks have drained; connections may close */
    HVD_MESSAGE_STRAGGLERS, /* up: the late ranks of a window of batches */
    HVD_MESSAGE_TRACE_START, /* down: a timeline of all ranks begins; timeline_ranks.c */
    HVD_MESSAGE_TRACE_STOP, /* down: the timeline ends */
    HVD_MESSAGE_TRACE, /* up: a rank's part of the timeline */
    HVD_MESSAGE_CLOCK_ASK, /* to the parent: asks for its time; clock_sync.h */
    HVD_MESSAGE_CLOCK_ANSWER, /* to one child */
};

struct hvd_mail;
struct hvd_uplink;

/* All members are borrowed until destroy. */
struct hvd_uplink_config {
    /* connected; the uplink handles its messages from now on */
    struct hvd_control *control;
    const struct hvd_layout *layout;
    int rank;
    struct hvd_mail *mail; /* the uplink handles its control mail from now on */
};

struct hvd_uplink_event {
    enum {
        HVD_UPLINK_MESSAGE, /* sets from, type, payload and bytes */
        /* sets rank and text, the reason why the job ends; see control.h */
        HVD_UPLINK_ABORT,
    } kind;
    /* a child's index in the order of hvd_tree_children, or HVD_UPLINK_PARENT */
    int from;
    uint32_t type;
    const void *payload; /* borrowed, valid during the handler only; aligned to 8 */
    size_t bytes;
    int rank;
    const char *text;
};

#define HVD_UPLINK_PARENT HVD_CONTROL_PARENT

/* The handler may send, and call hvd_control_abort and hvd_control_expect_close. */
typedef void (*hvd_uplink_handler)(void *context, const struct hvd_uplink_event *event);

/* The caller owns *out. */
int hvd_uplink_create(const struct hvd_uplink_config *config, struct hvd_uplink **out,
                      struct hvd_error *err);
void hvd_uplink_destroy(struct hvd_uplink *uplink); /* NULL is fine */

int hvd_uplink_children(const struct hvd_uplink *uplink); /* the number of children */

/* Maximum length of a message. */
#define HVD_UPLINK_MOST_BYTES ((size_t)64 << 20)

/* Sends a message (copied, type below 0x40000000) to the parent (HVD_ERR_STATE on rank
 * 0), or to all children. Never blocks. Returns 0, HVD_ERR_NOMEM, HVD_ERR_NET like
 * hvd_uplink_progress_node, or HVD_ERR_ARG for a message that is too long: it is not
 * sent, and an error that names it is logged. */
int hvd_uplink_send_up(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                       size_t bytes);
int hvd_uplink_send_down(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes);

/* Sends to all children on this node. */
int hvd_uplink_send_node(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes);

/* Sends to one child, by its index, over its socket. For a child on another node the
 * message keeps its order with messages to all children; for a child on this node it may
 * not. */
int hvd_uplink_send_child(struct hvd_uplink *uplink, int child, uint32_t type,
                          const void *payload, size_t bytes);

/* Deliver messages that have arrived and write those that wait: within the node (no
 * effect unless hvd_mail_has_come), and over the sockets (costs a system call). Return
 * the number of events handled, HVD_ERR_NOMEM, or, for invalid control mail within the
 * node, HVD_ERR_NET, which is logged. */
int hvd_uplink_progress_node(struct hvd_uplink *uplink, hvd_uplink_handler handler,
                             void *context);
int hvd_uplink_progress_sockets(struct hvd_uplink *uplink, hvd_uplink_handler handler,
                                void *context);

#endif
