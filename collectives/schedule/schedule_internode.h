/* SPDX-License-Identifier: Apache-2.0 */
/* Sums between nodes in which all owners of a slice talk to each other: the steps that
 * linear and direct share. In setup.slices, is_cut says that each node reduces a share of
 * a slice (direct) instead of all of it (linear). Private to collectives/schedule.
 *
 * No deadlock, even if no send completes before its receive is posted: an owner posts all
 * receives of a phase before its sends, and waits only for messages that every rank has
 * posted by the same point of its own schedule. Two owners send each other their slices
 * in ascending order. */
#ifndef HVD_SCHEDULE_INTERNODE_H
#define HVD_SCHEDULE_INTERNODE_H

#include "collectives/schedule/schedule_slices.h"

/* As in struct hvd_slice_ops: returns the room for the partials of every node. */
size_t hvd_internode_recv_bytes(const struct hvd_schedule *schedule, int64_t slice_count);

/* Returns the most steps that one tick of advance emits. */
int hvd_internode_steps(const struct hvd_schedule *schedule);

/* Returns the node at a distance from mine, cyclically. Each node sends to the next ones
 * first, so that not all send to the same node at once. */
int hvd_internode_node(const struct hvd_schedule *schedule, int distance);

/* Whether a rank of the node wants some of the result. */
bool hvd_internode_wants(const struct hvd_schedule *schedule, int node);

/* Returns the elements of a slice that a node reduces. */
struct hvd_range hvd_internode_share(const struct hvd_schedule *schedule,
                                     const struct hvd_slice_part *slice, int node);

/* Posts the receives of this rank's share of a slice from all other nodes. */
typedef void hvd_internode_recv(struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk,
                                const struct hvd_slice_part *slice);
hvd_internode_recv hvd_internode_recv_partials; /* into RECV */

/* Posts the messages that bring each node the partials it reduces: calls `recv` for each
 * slice of this rank, then sends from its SEND. */
void hvd_internode_post_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk, hvd_internode_recv *recv);

/* Waits for the receives of hvd_internode_recv_partials and reduces the partials in the
 * order of nodes, into OUT. */
void hvd_internode_reduce(struct hvd_schedule *schedule, const struct hvd_chunk *chunk);

#endif
