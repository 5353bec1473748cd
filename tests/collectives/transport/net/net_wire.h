/* SPDX-License-Identifier: Apache-2.0 */
/* A network for flows that is a list in this process: it delivers when and in which order
 * the test wants. Device memory is the host's. */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include "collectives/transport/net/net_flow.h"

enum {
    ON_THE_WAY = 8192, /* packets, at most */
};

struct wire_packet {
    struct hvd_net_header header;
    size_t bytes;
    char *data;
    bool is_offer;
};

struct wire_end {
    struct hvd_net_flow_link link;
    struct hvd_net_flow *flow;
    struct hvd_net_pool pool;
    struct wire_packet packets[ON_THE_WAY]; /* sent by this end, not yet delivered */
    int count;
    size_t most; /* bytes of them, at most */
    int status; /* not 0: of all that it would send */
    int failure; /* that the flow has reported */
};

extern int wire_kept; /* pieces of data that receivers have not released yet */
extern struct hvd_net_op *wire_fetching; /* until wire_end_fetching; NULL: none */
extern bool wire_is_slow; /* what is fetched next will be under way; else sometimes */

void wire_set_up(struct wire_end *end);
void wire_tear_down(struct wire_end *end);

/* Delivers packet number `index` of `from`; lends its data or not. */
void wire_deliver(struct wire_end *from, struct wire_end *to, int index, bool is_lent);

void wire_end_fetching(int status);

#endif
