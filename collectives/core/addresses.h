/* SPDX-License-Identifier: Apache-2.0 */
/* The network addresses of all ranks, while connecting: each sends its own up the tree,
 * rank 0 sends all down.
 *
 * Functions that return int return 0, or a status after which the job must end, with its
 * text.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_ADDRESSES_H
#define HVD_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_uplink;

struct hvd_addresses {
    struct hvd_uplink *uplink; /* borrowed */
    int rank;
    int size;
    bool are_wanted; /* between begin and end */
    bool are_complete;
    int missing;
    const void **data; /* [size] */
    size_t *bytes; /* [size] */
    void *message; /* what data points into, on ranks other than 0 */
};

/* Those of all ranks are here. */
static inline bool hvd_addresses_are_complete(const struct hvd_addresses *addresses)
{
    return addresses->are_complete;
}

/* Then: the address of each rank and its length, [size] each; borrowed until end. */
const void *const *hvd_addresses_all(const struct hvd_addresses *addresses);
const size_t *hvd_addresses_bytes(const struct hvd_addresses *addresses);

/* What others send may pass from now on. */
void hvd_addresses_init(struct hvd_addresses *addresses, struct hvd_uplink *uplink,
                        int rank, int size);

/* Sends this rank's own address; all are there when are_complete. Ends with end in any
 * case. */
int hvd_addresses_begin(struct hvd_addresses *addresses, const void *address,
                        size_t bytes, struct hvd_error *err);
void hvd_addresses_end(struct hvd_addresses *addresses);

/* Messages: the address of one rank, those of all. */
int hvd_addresses_on_one(struct hvd_addresses *addresses, const void *payload,
                         size_t bytes, struct hvd_error *err);
int hvd_addresses_on_all(struct hvd_addresses *addresses, const void *payload,
                         size_t bytes, struct hvd_error *err);

#endif
