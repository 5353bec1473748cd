/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run a collective together, and what they share for it. */
#include "collectives/team.h"

#include <stdlib.h>

int hvd_team_init(struct hvd_team *team, struct hvd_error *err)
{
    size_t slots = (size_t)team->geometry.slots;

    if (team->net == NULL) {
        return 0;
    }
    team->send_scratch = aligned_alloc(64, slots * team->geometry.slot_bytes);
    team->recv_scratch = aligned_alloc(64, slots * team->geometry.recv_bytes);
    if (team->send_scratch == NULL || team->recv_scratch == NULL) {
        hvd_team_finish(team);
        return hvd_fail(err, HVD_ERR_NOMEM, "no %zu bytes of memory for messages",
                        slots * (team->geometry.slot_bytes + team->geometry.recv_bytes));
    }
    return 0;
}

void hvd_team_finish(struct hvd_team *team)
{
    free(team->send_scratch);
    free(team->recv_scratch);
    team->send_scratch = NULL;
    team->recv_scratch = NULL;
}

char *hvd_team_place(const struct hvd_team *team, const struct hvd_place *place)
{
    size_t slot = (size_t)place->slot;

    switch (place->kind) {
    case HVD_PLACE_SEND:
        return team->send_scratch + slot * team->geometry.slot_bytes + place->offset;
    case HVD_PLACE_RECV:
        return team->recv_scratch + slot * team->geometry.recv_bytes + place->offset;
    default:
        return hvd_shm_slot(team->shm, place->kind, place->local_rank, place->slot) +
               place->offset;
    }
}

int hvd_team_node(const struct hvd_team *team)
{
    return team->layout->node[team->rank];
}

int hvd_team_local_rank(const struct hvd_team *team)
{
    return team->layout->local_rank[team->rank];
}

int hvd_team_local_size(const struct hvd_team *team)
{
    return hvd_layout_local_size(team->layout, hvd_team_node(team));
}
