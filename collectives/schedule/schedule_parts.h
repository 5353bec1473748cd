/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of a node does what for the others, and how work is cut into parts. Pure. */
#ifndef HVD_PARTS_H
#define HVD_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/layout.h"

struct hvd_range {
    int64_t begin;
    int64_t count;
};

/* The most ranks that a node has. */
int hvd_slices_widest(const struct hvd_layout *layout);

/* The most of `slices` slices that fall to one rank. */
int hvd_slices_each(const struct hvd_layout *layout, int slices);

/* The rank that owns a slice on a node: a node with fewer ranks than slices deals them
 * out in turn. */
int hvd_slice_owner(const struct hvd_layout *layout, int node, int slice);

/* The most that one of `parts` parts of count elements gets. */
int64_t hvd_part_most(int64_t count, int parts);

/* Part `part` of a range that is cut into `parts`; the last ones may be empty. */
struct hvd_range hvd_part_of(struct hvd_range whole, int parts, int part);

/* What two ranges have in common; count 0 if nothing. */
struct hvd_range hvd_range_common(struct hvd_range a, struct hvd_range b);

/* Into how many chunks of equal size to cut `units` units of unit_bytes, of which `most`
 * fit a slot: of chunk_bytes where that is not 0; else as few as overlap well, but none
 * too short to be worth it. 0 if there is nothing. */
int64_t hvd_chunk_count(int64_t units, size_t unit_bytes, int64_t most,
                        size_t chunk_bytes);

/* a / b rounded up, for a >= 0 and b > 0. */
int64_t hvd_divide_up(int64_t a, int64_t b);

#endif
