/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns slices to the ranks of a node, and cuts work into parts. Pure. */
#ifndef HVD_PARTS_H
#define HVD_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/layout.h"

struct hvd_range {
    int64_t begin;
    int64_t count;
};

/* Returns the most ranks that a node has. */
int hvd_slices_widest(const struct hvd_layout *layout);

/* Returns the most of `slices` slices that one rank owns. */
int hvd_slices_each(const struct hvd_layout *layout, int slices);

/* Returns the rank that owns a slice on a node. On a node with fewer ranks than slices
 * the ranks take turns. */
int hvd_slice_owner(const struct hvd_layout *layout, int node, int slice);

/* Returns the most elements that one of `parts` parts of `count` elements has. */
int64_t hvd_part_most(int64_t count, int parts);

/* Returns part `part` of a range that is cut into `parts`; the last parts may be
 * empty. */
struct hvd_range hvd_part_of(struct hvd_range whole, int parts, int part);

/* Returns the intersection of two ranges; its count is 0 if there is none. */
struct hvd_range hvd_range_common(struct hvd_range a, struct hvd_range b);

/* The length below which a chunk costs more time for its steps than its overlap saves. */
enum {
    HVD_LEAST_CHUNK_BYTES = 64 << 10
};

/* Returns into how many chunks of equal size `units` units of unit_bytes are cut; at most
 * `most` units fit a slot. A chunk has about chunk_bytes. If that is 0, there are just
 * enough chunks to overlap well, but none much shorter than least_bytes. Returns 0 if
 * there are no units. */
int64_t hvd_chunk_count(int64_t units, size_t unit_bytes, int64_t most,
                        size_t least_bytes, size_t chunk_bytes);

/* Returns a / b rounded up, for a >= 0 and b > 0. */
int64_t hvd_divide_up(int64_t a, int64_t b);

#endif
