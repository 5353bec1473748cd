/* SPDX-License-Identifier: Apache-2.0 */
/* Relays messages of decisions down the tree, to each child the parts that concern it.
 *
 *   position      counts the messages that rank 0 has made
 *   bytes         the length of the decisions for all ranks
 *   decisions     about the global process set; some of them add or remove other sets
 *   parts         each about one other set: a record (count: bytes, id: set), decisions
 *
 * A child gets the parts about sets that have ranks in its branch. If nothing is left, it
 * gets no message, and its position stays behind. A part that creates or removes a set
 * also goes to all other ranks of the nodes of its members.
 *
 * The decisions for all ranks come first. This order is safe: a set exists before
 * anything is decided in it, and it is removed when nothing of it is left. Its tensors
 * are evicted in the message that removes it. */
#ifndef HVD_RELAY_H
#define HVD_RELAY_H

#include "collectives/agreement/codec.h"

struct hvd_agreement;

struct hvd_relay {
    uint64_t position; /* position of the last message that this rank got */
    /* [branches] position of the last message that each child is known to have seen */
    uint64_t *seen_by;
    uint64_t *sent_to; /* [branches] position of the last message sent to it */
    uint64_t last_sent; /* position of the last message sent to any child */
    int far_children; /* children on other nodes: branches 1 ... far_children */
    /* memory for a message without the parts that do not concern its receivers */
    struct hvd_writer filtered;
};

/* A message while it is parsed. */
struct hvd_decision_parts {
    const void *payload;
    size_t bytes;
    uint64_t position;
    struct hvd_reader global;
    struct hvd_reader sets;
};

/* Returns 0 or HVD_ERR_NOMEM; the caller must call finish in both cases. */
int hvd_relay_init(struct hvd_agreement *agreement);
void hvd_relay_finish(struct hvd_relay *relay);

/* Begins to parse a message, which stays borrowed. Returns 0 or HVD_ERR_NET. */
int hvd_relay_open(struct hvd_relay *relay, const void *payload, size_t bytes,
                   struct hvd_decision_parts *parts);

/* Sends each child the parts that concern it. */
int hvd_relay_pass_down(struct hvd_agreement *agreement,
                        const struct hvd_decision_parts *parts);

/* Returns the next part and the set that it is about; *set is -1 behind the last one.
 * Returns 0 or HVD_ERR_NET. */
int hvd_relay_next(struct hvd_decision_parts *parts, int *set, struct hvd_reader *part);

/* Whether the position that a branch reports is possible: not lower than its last one,
 * and not above this rank's own. */
bool hvd_relay_may_have_seen(const struct hvd_relay *relay, int branch,
                             uint64_t position);

/* Takes note that a branch has seen the decisions up to position, and forgets evicted
 * tensors that no branch may name any more. Branch 0: this rank itself. */
void hvd_relay_note_seen(struct hvd_agreement *agreement, int branch, uint64_t position);

#endif
