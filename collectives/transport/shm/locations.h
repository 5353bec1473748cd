/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a rank for a collective: locations, each with a number of slots. */
#ifndef HVD_LOCATIONS_H
#define HVD_LOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* IN, OUT and LINE are in shared memory (shm_region.h), SEND and RECV in the rank's
 * own. */
enum hvd_location_kind {
    HVD_LOCATION_IN,
    HVD_LOCATION_OUT,
    HVD_LOCATION_LINE,
    HVD_LOCATION_SEND,
    HVD_LOCATION_RECV,
};

enum {
    HVD_LINE_BYTES = 24, /* size of one of the two LINEs */
};

/* Sizes of the locations; the same on all ranks. */
struct hvd_geometry {
    int slots; /* at least 2 */
    size_t slot_bytes; /* a multiple of 64 */
    size_t recv_bytes; /* a multiple of 64, at least slot_bytes */
    /* Ranks of a node may read each other's inputs, and write each other's outputs, in
     * place. Input and output are then one contiguous piece of memory each. */
    bool has_single_copy;
};

#endif
