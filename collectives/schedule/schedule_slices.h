/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in chunks, of which each local rank reduces a part, a slice: the steps that
 * two_shot, linear, direct and multilevel share. Private to collectives/schedule.
 *
 * On a node with fewer ranks than slices the ranks take turns, so a rank owns one slice
 * or more. The steps of one chunk, in ticks from the one that packs it:
 *
 *   tick 0   PUT my chunk; sync; owners reduce their slices over all local ranks
 *   then     owners reduce over the nodes, as the algorithm's ops do it
 *   get_lag  sync; every rank GETs all slices from the OUT of their owners
 *
 * Each tick has one sync, for the chunk packed in it, which also tells that all local
 * ranks have ended the previous tick. So with a sync in tick t
 *   - IN of chunk t - slots may be overwritten in tick t: it was read in tick t - slots
 *   - OUT of chunk t - 1 - slots may be overwritten in tick t: it was copied out in tick
 *     t - 1 - slots + get_lag at the latest, and get_lag <= slots
 * An algorithm that writes to OUT of chunk t in tick t needs get_lag < slots. A rank does
 * not pack the slices that it owns: it reads them from its input.
 *
 * Sums run over local ranks, then over nodes, both in order (multilevel: over each row in
 * order), independent of the chunks: the same bits on all ranks. */
#ifndef HVD_SCHEDULE_SLICES_H
#define HVD_SCHEDULE_SLICES_H

#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_state.h"

struct hvd_chunk {
    struct hvd_range elements; /* elements of the input */
    int slot;
};

/* A slice of a chunk that this rank owns. */
struct hvd_slice_part {
    int number;
    int turn; /* how many of this rank's slices come before it */
    struct hvd_range elements;
};

/* The algorithm's part of a sum: how the slices of a chunk are reduced. */
struct hvd_slice_ops {
    /* Returns how many bytes of RECV a slice of slice_count elements needs. NULL: all
     * ranks are on one node. */
    size_t (*recv_bytes)(const struct hvd_schedule *schedule, int64_t slice_count);
    /* Emits all steps of a tick between packing one chunk and copying another one out. */
    void (*advance)(struct hvd_schedule *schedule, int64_t tick);
};

/* Sets up a schedule whose setup.slices has get_lag and the fields that recv_bytes needs.
 * The caller adds room for the steps of advance to step_capacity. Returns 0 or
 * HVD_ERR_ARG. */
int hvd_slices_set_up(struct hvd_schedule *schedule, const struct hvd_slice_ops *ops,
                      struct hvd_error *err);

/* Cuts the input into chunks of up to `most` elements. */
void hvd_slices_cut(struct hvd_schedule *schedule, int64_t most);

bool hvd_slices_has_chunk(const struct hvd_schedule *schedule, int64_t number);
struct hvd_chunk hvd_slices_chunk(const struct hvd_schedule *schedule, int64_t number);

/* Moves to the next slice that this rank owns, starting with slice->turn -1; false if
 * there is none. */
bool hvd_slices_next(const struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                     struct hvd_slice_part *slice);

/* Return where element `first` of a chunk is: in a local rank's IN or OUT, in my OUT,
 * and, for a slice, in my SEND. */
struct hvd_location hvd_slices_location(const struct hvd_schedule *schedule,
                                        const struct hvd_chunk *chunk,
                                        struct hvd_location location, int64_t first);
struct hvd_location hvd_slices_out(const struct hvd_schedule *schedule,
                                   const struct hvd_chunk *chunk, int64_t first);
struct hvd_location hvd_slices_send(const struct hvd_schedule *schedule,
                                    const struct hvd_chunk *chunk,
                                    const struct hvd_slice_part *slice, int64_t first);

/* Emits the PUT of a range of a chunk into my IN. */
void hvd_slices_pack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                     struct hvd_range range);

/* Emits the reduction of this rank's slices over all local ranks, into its SEND. */
void hvd_slices_reduce_local(struct hvd_schedule *schedule,
                             const struct hvd_chunk *chunk);

#endif
