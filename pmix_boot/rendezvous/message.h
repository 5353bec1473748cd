/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between ranks and the service of an elastic job. Both come from the same
 * release, so structs are sent as they are. */
#ifndef HVD_RENDEZVOUS_MESSAGE_H
#define HVD_RENDEZVOUS_MESSAGE_H

#include <stdint.h>

enum hvd_rendezvous_message {
    HVD_RENDEZVOUS_JOIN =
        1, /* from a rank: I am ready to begin, struct hvd_rendezvous_join */
    HVD_RENDEZVOUS_READY, /* from a rank: I have the state of the training; no data */
    HVD_RENDEZVOUS_FORMED, /* to a rank: begin, struct hvd_rendezvous_formed */
    HVD_RENDEZVOUS_REFUSED, /* to a rank: struct hvd_rendezvous_refused, then the reason */
    HVD_RENDEZVOUS_LOST, /* to a rank: an int32_t, a rank of its generation is gone */
    HVD_RENDEZVOUS_UPDATED, /* to a rank: others wait to be let in; no data */
};

/* Then the host's name, then the card. */
struct hvd_rendezvous_join {
    int32_t slot; /* the number that the launcher gave this process */
    uint32_t host_bytes; /* without a final NUL */
    uint64_t card_bytes;
};

/* Then for each rank a uint64_t with the size of its card, and the card. */
struct hvd_rendezvous_formed {
    uint32_t generation; /* 1, 2, ... */
    int32_t rank;
    int32_t size;
};

struct hvd_rendezvous_refused {
    int32_t status; /* of enum hvd_status */
};

#endif
