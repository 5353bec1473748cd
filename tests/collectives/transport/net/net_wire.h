/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated network for flows: a list of packets in this process. The test decides when
 * and in which order they are delivered. Device memory is host memory. */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include "collectives/transport/net/net_flow.h"

enum {
    ON_THE_WAY = 8192, /* limit for the packets under way */
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
    struct wire_packet packets[ON_THE_WAY]; /* sent by this end, not delivered yet */
    int count;
    size_t most; /* the most bytes that were under way at a time, without offers */
    int status; /* if not 0, every send returns this */
    int failure; /* status that the flow has reported */
};

/* number of packets whose data is still kept by receivers */
extern int wire_kept;
/* the fetch that is under way, until wire_end_fetching; or NULL */
extern struct hvd_net_op *wire_fetching;
/* true: the next fetch stays under way; false: it does so at random */
extern bool wire_is_slow;

/* where the counters of ends that are set up from now on start */
extern uint32_t wire_first_number, wire_first_cost;

void wire_set_up(struct wire_end *end);
void wire_tear_down(struct wire_end *end);

/* Delivers packet number `index` of `from`. is_lent: the receiver may keep the data. */
void wire_deliver(struct wire_end *from, struct wire_end *to, int index, bool is_lent);

void wire_end_fetching(int status);

#endif
