/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between ranks and the service of an elastic job. Both come from the same
 * release, so structs are sent as they are. */
#ifndef HVD_ELASTIC_MESSAGE_H
#define HVD_ELASTIC_MESSAGE_H

#include <stdint.h>

enum hvd_elastic_message {
    HVD_ELASTIC_JOIN = 1, /* from a rank: I am ready to begin, struct hvd_elastic_join */
    HVD_ELASTIC_READY, /* from a rank: I have the state of the training; no data */
    HVD_ELASTIC_FORMED, /* to a rank: begin, struct hvd_elastic_formed */
    HVD_ELASTIC_REFUSED, /* to a rank: struct hvd_elastic_refused, then the reason */
    HVD_ELASTIC_LOST, /* to a rank: an int32_t, a rank of its generation is gone */
    HVD_ELASTIC_UPDATED, /* to a rank: others wait to be let in; no data */
};

/* Then the host's name, then the card. */
struct hvd_elastic_join {
    int32_t slot; /* the number that the launcher gave this process */
    uint32_t host_bytes; /* without a final NUL */
    uint64_t card_bytes;
};

/* Then for each rank a uint64_t with the size of its card, and the card. */
struct hvd_elastic_formed {
    uint32_t generation; /* 1, 2, ... */
    int32_t rank;
    int32_t size;
};

struct hvd_elastic_refused {
    int32_t status; /* of enum hvd_status */
};

#endif
