/* SPDX-License-Identifier: Apache-2.0 */
/* Relays messages of decisions down the tree: which part of them each child gets.
 *
 *   position      counts the messages that rank 0 has made
 *   bytes         of what follows for all ranks
 *   decisions     about the global process set, and about sets as such
 *   parts         each about one further set: a record (count: bytes, id: the set), decisions
 *
 * A child gets the parts of those sets that have ranks in its branch, and no message at
 * all where nothing is left: its position then stays behind. Parts that create or remove
 * a set go to all ranks of the nodes that have members, too. What all ranks get comes
 * first. That can be, for a set is there before anything is decided in it, and is removed
 * when it has nothing left; but its tensors are evicted in the message that removes
 * it. */
#ifndef HVD_RELAY_H
#define HVD_RELAY_H

#include "collectives/agreement/codec.h"

struct hvd_agreement;

struct hvd_relay {
    uint64_t position; /* of the last message seen */
    uint64_t *seen_by; /* [branches] the same, by each child */
    uint64_t *sent_to; /* [branches] of the last one that it was sent */
    uint64_t last_sent; /* of the last one that any child was sent */
    int far_children; /* those on other nodes, branches 1 ... far_children */
    struct hvd_writer filtered; /* what one of them is sent of a message */
};

/* A message, while it is read. */
struct hvd_decision_parts {
    const void *payload;
    size_t bytes;
    uint64_t position;
    struct hvd_reader global;
    struct hvd_reader sets;
};

/* Returns 0 or HVD_ERR_NOMEM; then finish is called all the same. */
int hvd_relay_init(struct hvd_agreement *agreement);
void hvd_relay_finish(struct hvd_relay *relay);

/* Begins to take a message, which stays borrowed: returns 0 or HVD_ERR_NET. */
int hvd_relay_open(struct hvd_relay *relay, const void *payload, size_t bytes,
                   struct hvd_decision_parts *parts);

/* Sends the children what concerns them. */
int hvd_relay_pass_down(struct hvd_agreement *agreement,
                        const struct hvd_decision_parts *parts);

/* Gives the parts, each about one set, until *set is -1. Returns 0 or HVD_ERR_NET. */
int hvd_relay_next(struct hvd_decision_parts *parts, int *set, struct hvd_reader *part);

/* Whether a branch can have: it has not seen less before, nor what is still to come. */
bool hvd_relay_may_have_seen(const struct hvd_relay *relay, int branch,
                             uint64_t position);

/* A branch has seen the decisions up to position. Evicted tensors that no branch may name
 * any more are forgotten. Branch 0: this rank itself. */
void hvd_relay_note_seen(struct hvd_agreement *agreement, int branch, uint64_t position);

#endif
