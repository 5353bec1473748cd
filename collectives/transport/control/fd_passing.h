/* SPDX-License-Identifier: Apache-2.0 */
/* Passing descriptors among the ranks of a node while the control tree is built: each local rank
 * gives one to the leader, and the leader gives all of them, and one of its own, to each. */
#ifndef HVD_FD_PASSING_H
#define HVD_FD_PASSING_H

#include <stdbool.h>

#include "pmix_boot/layout.h"
#include "pmix_boot/wire/link.h"

struct hvd_fd_passing {
    int local_rank; /* of this rank */
    int local_size;
    int leader_fd; /* on the leader the caller's; elsewhere what came, or -1 */
    int local_fd; /* the caller's */
    int *peer_fds; /* [local size], what came; -1 where nothing did */
    int missing; /* messages that have yet to come */
};

/* The descriptors, which may be -1, stay the caller's. Returns 0 or HVD_ERR_NOMEM. */
int hvd_fd_passing_init(struct hvd_fd_passing *passing, const struct hvd_layout *layout,
                        int rank, int leader_fd, int local_fd);

/* Closes what came and was not taken. A zeroed one is fine. */
void hvd_fd_passing_finish(struct hvd_fd_passing *passing);

/* On a local rank: gives its descriptor to the leader. */
int hvd_fd_passing_offer(const struct hvd_fd_passing *passing, struct hvd_link *leader);

/* On the leader, when nothing is missing: gives a local rank all that it is to have. */
int hvd_fd_passing_hand_out(const struct hvd_fd_passing *passing, struct hvd_link *link,
                            int local_rank);

/* Takes a message that the other end sent with one of the two above. Returns 0; HVD_ERR_NET
 * when it makes no sense; HVD_ERR_NOMEM when this process has no descriptor left. */
int hvd_fd_passing_accept(struct hvd_fd_passing *passing,
                          struct hvd_link_message *message);

/* Hands over what came, when nothing is missing. */
void hvd_fd_passing_take(struct hvd_fd_passing *passing, int *leader_fd, int *peer_fds);

#endif
