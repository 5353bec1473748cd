/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers that a collective uses on a rank. Each kind of buffer is a location and
 * consists of slots of equal size. */
#ifndef HVD_LOCATIONS_H
#define HVD_LOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* IN and OUT are slots for inputs and results, LINE is for data of a few bytes; these are
 * in shared memory (shm_region.h). SEND and RECV are in the rank's own memory. */
enum hvd_location_kind {
    HVD_LOCATION_IN,
    HVD_LOCATION_OUT,
    HVD_LOCATION_LINE,
    HVD_LOCATION_SEND,
    HVD_LOCATION_RECV,
};

enum {
    HVD_LINE_BYTES = 24, /* size of a LINE; each rank has two, next to its counter */
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
