/* SPDX-License-Identifier: Apache-2.0 */
/* How descriptors get around on a node while the control tree is built. */
#include "collectives/transport/control/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/control_wire.h"
#include "gpu_binding/base/fork_close.h"
#include "gpu_binding/base/hvd_status.h"

int hvd_sharing_init(struct hvd_sharing *sharing, const struct hvd_layout *layout,
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
    *sharing = (struct hvd_sharing){
        .local_rank = layout->local_rank[rank],
        .local_size = local_size,
        .leader_fd = is_leader ? leader_fd : -1,
        .local_fd = local_fd,
        .peer_fds = peer_fds,
        /* one of each other local rank; the others get the leader's to share, too */
        .missing = is_leader ? local_size - 1 : local_size,
    };
    return 0;
}

void hvd_sharing_finish(struct hvd_sharing *sharing)
{
    if (sharing->peer_fds == NULL) {
        return;
    }
    for (int i = 0; i < sharing->local_size; i++) {
        hvd_fork_close_now(sharing->peer_fds[i]);
    }
    if (sharing->local_rank != 0) {
        hvd_fork_close_now(sharing->leader_fd);
    }
    free(sharing->peer_fds);
    *sharing = (struct hvd_sharing){0};
}

static int send_one(struct hvd_link *link, uint32_t type, int local_rank, int fd)
{
    struct hvd_wire_share share = {.local_rank = local_rank, .is_there = fd >= 0};

    return hvd_link_send(link, type, &share, sizeof(share), fd);
}

int hvd_sharing_offer(const struct hvd_sharing *sharing, struct hvd_link *leader)
{
    return send_one(leader, HVD_WIRE_JOINED, sharing->local_rank, sharing->local_fd);
}

int hvd_sharing_hand_out(const struct hvd_sharing *sharing, struct hvd_link *link,
                         int local_rank)
{
    int status = send_one(link, HVD_WIRE_SHARE, HVD_WIRE_LEADERS, sharing->leader_fd);

    for (int i = 0; i < sharing->local_size && status == 0; i++) {
        int fd = i == sharing->local_rank ? sharing->local_fd : sharing->peer_fds[i];

        if (i != local_rank) {
            status = send_one(link, HVD_WIRE_SHARE, i, fd);
        }
    }
    return status;
}

int hvd_sharing_accept(struct hvd_sharing *sharing, struct hvd_link_message *message)
{
    struct hvd_wire_share share;
    int *place;

    if (message->bytes != sizeof(share)) {
        return HVD_ERR_NET;
    }
    memcpy(&share, message->payload, sizeof(share));
    if (share.local_rank < HVD_WIRE_LEADERS || share.local_rank >= sharing->local_size) {
        return HVD_ERR_NET;
    }
    if (share.is_there != 0 && message->fd < 0) {
        return HVD_ERR_NOMEM;
    }
    place = share.local_rank == HVD_WIRE_LEADERS ? &sharing->leader_fd
                                                 : &sharing->peer_fds[share.local_rank];
    if (*place >= 0 || sharing->missing == 0) {
        return HVD_ERR_NET;
    }
    *place = message->fd;
    message->fd = -1;
    sharing->missing--;
    return 0;
}

void hvd_sharing_take(struct hvd_sharing *sharing, int *leader_fd, int *peer_fds)
{
    for (int i = 0; i < sharing->local_size; i++) {
        peer_fds[i] = sharing->peer_fds[i];
        sharing->peer_fds[i] = -1;
    }
    if (sharing->local_rank != 0) {
        *leader_fd = sharing->leader_fd;
        sharing->leader_fd = -1;
    }
}
