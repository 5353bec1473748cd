/* SPDX-License-Identifier: Apache-2.0 */
/* The network addresses of all ranks, while connecting: each rank sends its own up the
 * tree, and rank 0 sends all of them down.
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
    void *message; /* on ranks other than 0: the memory that data points into */
};

/* Whether the addresses of all ranks are known. */
static inline bool hvd_addresses_are_complete(const struct hvd_addresses *addresses)
{
    return addresses->are_complete;
}

/* Return the addresses of all ranks, and their lengths in bytes, as arrays of `size`
 * entries. Call them only between hvd_addresses_begin and _end, once
 * hvd_addresses_are_complete. The arrays are borrowed until hvd_addresses_end. */
const void *const *hvd_addresses_all(const struct hvd_addresses *addresses);
const size_t *hvd_addresses_bytes(const struct hvd_addresses *addresses);

/* Prepares for messages of other ranks, which may arrive from now on. */
void hvd_addresses_init(struct hvd_addresses *addresses, struct hvd_uplink *uplink,
                        int rank, int size);

/* Sends this rank's own address. Call end afterwards, also after a failure. */
int hvd_addresses_begin(struct hvd_addresses *addresses, const void *address,
                        size_t bytes, struct hvd_error *err);
void hvd_addresses_end(struct hvd_addresses *addresses);

/* Handle a message with the address of one rank, or with the addresses of all ranks. */
int hvd_addresses_on_one(struct hvd_addresses *addresses, const void *payload,
                         size_t bytes, struct hvd_error *err);
int hvd_addresses_on_all(struct hvd_addresses *addresses, const void *payload,
                         size_t bytes, struct hvd_error *err);

#endif
