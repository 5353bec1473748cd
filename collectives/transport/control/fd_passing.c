/* SPDX-License-Identifier: Apache-2.0 */
/* Passes descriptors among the ranks of a node while the control tree is built. */
#include "collectives/transport/control/fd_passing.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/control_protocol.h"
#include "gpu_binding/base/fork_close.h"
#include "gpu_binding/base/hvd_status.h"

enum {
    LEADERS = -1
};

/* Payload of JOINED from a local rank, and of SHARE. */
struct announcement {
    /* the rank that the descriptor belongs to; LEADERS: the one that the leader shares */
    int32_t local_rank;
    int32_t is_there; /* 0 if no descriptor comes with the message */
};

int hvd_fd_passing_init(struct hvd_fd_passing *passing, const struct hvd_layout *layout,
                        int rank, int leader_fd, int local_fd)
{
    int local_size = hvd_layout_local_size(layout, layout->node[rank]);
    bool is_leader = layout->local_rank[rank] == 0;
    int *peer_fds = malloc((size_t)local_size * sizeof(*peer_fds));

    if (peer_fds == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < local_size; i++) {
        peer_fds[i] = -1;
    }
    *passing = (struct hvd_fd_passing){
        .local_rank = layout->local_rank[rank],
        .local_size = local_size,
        .leader_fd = is_leader ? leader_fd : -1,
        .local_fd = local_fd,
        .peer_fds = peer_fds,
        /* one from each other local rank; on ranks other than the leader also the
         * leader's */
        .missing = is_leader ? local_size - 1 : local_size,
    };
    return 0;
}

void hvd_fd_passing_finish(struct hvd_fd_passing *passing)
{
    if (passing->peer_fds == NULL) {
        return;
    }
    for (int i = 0; i < passing->local_size; i++) {
        hvd_fork_close_now(passing->peer_fds[i]);
    }
    if (passing->local_rank != 0) {
        hvd_fork_close_now(passing->leader_fd);
    }
    free(passing->peer_fds);
    *passing = (struct hvd_fd_passing){0};
}

static int send_one(struct hvd_link *link, uint32_t type, int local_rank, int fd)
{
    struct announcement announcement = {.local_rank = local_rank, .is_there = fd >= 0};

    return hvd_link_send(link, type, &announcement, sizeof(announcement), fd);
}

int hvd_fd_passing_offer(const struct hvd_fd_passing *passing, struct hvd_link *leader)
{
    return send_one(leader, HVD_CONTROL_TYPE_JOINED, passing->local_rank,
                    passing->local_fd);
}

int hvd_fd_passing_hand_out(const struct hvd_fd_passing *passing, struct hvd_link *link,
                            int local_rank)
{
    int status = send_one(link, HVD_CONTROL_TYPE_SHARE, LEADERS, passing->leader_fd);

    for (int i = 0; i < passing->local_size && status == 0; i++) {
        int fd = i == passing->local_rank ? passing->local_fd : passing->peer_fds[i];

        if (i != local_rank) {
            status = send_one(link, HVD_CONTROL_TYPE_SHARE, i, fd);
        }
    }
    return status;
}

int hvd_fd_passing_accept(struct hvd_fd_passing *passing,
                          struct hvd_link_message *message)
{
    struct announcement announcement;
    int *place;

    if (message->bytes != sizeof(announcement)) {
        return HVD_ERR_NET;
    }
    memcpy(&announcement, message->payload, sizeof(announcement));
    if (announcement.local_rank < LEADERS ||
        announcement.local_rank >= passing->local_size) {
        return HVD_ERR_NET;
    }
    if (announcement.is_there != 0 && message->fd < 0) {
        return HVD_ERR_NOMEM;
    }
    place = announcement.local_rank == LEADERS
                ? &passing->leader_fd
                : &passing->peer_fds[announcement.local_rank];
    if (*place >= 0 || passing->missing == 0) {
        return HVD_ERR_NET;
    }
    *place = message->fd;
    message->fd = -1;
    passing->missing--;
    return 0;
}

void hvd_fd_passing_take(struct hvd_fd_passing *passing, int *leader_fd, int *peer_fds)
{
    for (int i = 0; i < passing->local_size; i++) {
        peer_fds[i] = passing->peer_fds[i];
        passing->peer_fds[i] = -1;
    }
    if (passing->local_rank != 0) {
        *leader_fd = passing->leader_fd;
        passing->leader_fd = -1;
    }
}
