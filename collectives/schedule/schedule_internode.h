/* SPDX-License-Identifier: Apache-2.0 */
/* Sums between nodes in which the owners of a slice all talk to each other: what linear
 * and direct share. In setup.slices, is_cut says that each node adds up a share of a
 * slice (direct), not all of it (linear). Private to collectives/schedule.
 *
 * An owner posts all receives of a phase before its sends, and waits only for what every
 * rank has posted by the same point of its own schedule: no deadlock, even when no send
 * ends before its receive is posted. Two owners send each other their slices in
 * ascending order. */
#ifndef HVD_SCHEDULE_INTERNODE_H
#define HVD_SCHEDULE_INTERNODE_H

#include "collectives/schedule/schedule_slices.h"

/* As in struct hvd_slice_ops: room for the partials of every node. */
size_t hvd_internode_recv_bytes(const struct hvd_schedule *schedule, int64_t slice_count);

/* The most steps that one tick of advance emits. */
int hvd_internode_steps(const struct hvd_schedule *schedule);

/* The node at a distance around the ring of nodes; each sends to the next ones first, so
 * that not all start with the same. */
int hvd_internode_node(const struct hvd_schedule *schedule, int distance);

/* Whether a rank of the node gets some of the result. */
bool hvd_internode_wants(const struct hvd_schedule *schedule, int node);

/* The elements of a slice that a node adds up. */
struct hvd_range hvd_internode_share(const struct hvd_schedule *schedule,
                                     const struct hvd_slice_part *slice, int node);

/* Posts the receives in which this rank gets its share of a slice from all other
 * nodes. */
typedef void hvd_internode_recv(struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk,
                                const struct hvd_slice_part *slice);
hvd_internode_recv hvd_internode_recv_partials; /* to RECV */

/* Posts the messages with which the nodes get the partials that they add up: `recv` for
 * each slice of this rank, then the sends from its SEND. */
void hvd_internode_post_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk, hvd_internode_recv *recv);

/* Awaits what hvd_internode_recv_partials has posted and adds it up, in the order of
 * nodes -> OUT. */
void hvd_internode_reduce(struct hvd_schedule *schedule, const struct hvd_chunk *chunk);

#endif
