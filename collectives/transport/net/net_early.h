/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments that came before their receive was posted, or before an earlier one. */
#ifndef HVD_NET_EARLY_H
#define HVD_NET_EARLY_H

#include "collectives/transport/net/net_flow.h"

/* In order of sequence. */
struct hvd_early {
    struct hvd_early *next;
    uint32_t sequence;
    size_t bytes;
    const void *data;
    bool is_offer;
    void (*release)(void *context, void *data); /* NULL: data is copied below */
    void *release_context;
    size_t room; /* of copy */
    char copy[];
};

/* Zeroed is empty. */
struct hvd_early_list {
    struct hvd_early *first;
    struct hvd_early *last;
    struct hvd_early *spare; /* with room for the longest fragment */
};

/* Returns HVD_INPROGRESS when the arrival's data itself is kept, 0 when it is copied, or
 * HVD_ERR_NOMEM. */
int hvd_early_keep(struct hvd_early_list *list, const struct hvd_flow_arrival *arrival);

void hvd_early_drop(struct hvd_early_list *list); /* the first */
void hvd_early_finish(struct hvd_early_list *list); /* all */

#endif
