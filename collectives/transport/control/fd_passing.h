/* SPDX-License-Identifier: Apache-2.0 */
/* Passes descriptors among the ranks of a node while the control tree is built: each
 * local rank sends one to the leader, and the leader sends all of them, and one of its
 * own, to each local rank. */
#ifndef HVD_FD_PASSING_H
#define HVD_FD_PASSING_H

#include <stdbool.h>

#include "pmix_boot/layout.h"
#include "pmix_boot/sock/link.h"

struct hvd_fd_passing {
    int local_rank; /* local rank of this rank */
    int local_size;
    /* on the leader: owned by the caller; on others: the one received, or -1 */
    int leader_fd;
    int local_fd; /* this rank's descriptor, owned by the caller */
    int *peer_fds; /* [local size] received descriptors; -1: none received */
    int missing; /* messages that have yet to arrive */
};

/* The descriptors, which may be -1, still belong to the caller. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_fd_passing_init(struct hvd_fd_passing *passing, const struct hvd_layout *layout,
                        int rank, int leader_fd, int local_fd);

/* Closes descriptors that were received and not taken. A zeroed struct is allowed. */
void hvd_fd_passing_finish(struct hvd_fd_passing *passing);

/* On a local rank: sends its descriptor to the leader. */
int hvd_fd_passing_offer(const struct hvd_fd_passing *passing, struct hvd_link *leader);

/* On the leader, once nothing is missing: sends all descriptors for a local rank to that
 * rank. */
int hvd_fd_passing_hand_out(const struct hvd_fd_passing *passing, struct hvd_link *link,
                            int local_rank);

/* Handles a message sent by one of the two functions above. Returns 0, HVD_ERR_NET if it
 * is invalid, or HVD_ERR_NOMEM if this process has no descriptor left. */
int hvd_fd_passing_accept(struct hvd_fd_passing *passing,
                          struct hvd_link_message *message);

/* Hands the received descriptors over to the caller, once nothing is missing. */
void hvd_fd_passing_take(struct hvd_fd_passing *passing, int *leader_fd, int *peer_fds);

#endif
