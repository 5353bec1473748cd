/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run collectives together in one order, and the resources they share for
 * it. */
#include "collectives/run/team.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/algorithm.h"

static int init_layout(struct hvd_team *team, const struct hvd_boot *boot, int count,
                       struct hvd_error *err)
{
    const char **hosts = calloc((size_t)count, sizeof(hosts[0]));
    struct hvd_layout *layout = calloc(1, sizeof(*layout));
    int status = HVD_ERR_NOMEM;

    team->layout = layout;
    if (hosts != NULL && layout != NULL) {
        for (int i = 0; i < count; i++) {
            hosts[i] = boot->peers[team->ranks[i]].host;
        }
        status = hvd_layout_init(layout, hosts, count, err);
    } else {
        hvd_fail(err, status, "no memory for a team of %d ranks", count);
    }
    free(hosts);
    return status;
}

static int init_local_ranks(struct hvd_team *team, const struct hvd_boot *boot)
{
    const struct hvd_layout *layout = team->layout;

    team->node = layout->node[team->rank];
    team->local_rank = layout->local_rank[team->rank];
    team->local_size = hvd_layout_local_size(layout, team->node);
    team->local_ranks = calloc((size_t)team->local_size, sizeof(team->local_ranks[0]));
    for (int i = 0; team->local_ranks != NULL && i < team->local_size; i++) {
        int member = hvd_layout_rank(layout, team->node, i);

        team->local_ranks[i] = boot->layout.local_rank[team->ranks[member]];
    }
    return team->local_ranks != NULL ? 0 : HVD_ERR_NOMEM;
}

static int init_scratch(struct hvd_team *team, struct hvd_error *err)
{
    size_t slots = (size_t)team->geometry.slots;

    if (team->layout->nodes == 1) {
        return 0;
    }
    team->send_scratch = aligned_alloc(64, slots * team->geometry.slot_bytes);
    team->recv_scratch = aligned_alloc(64, slots * team->geometry.recv_bytes);
    if (team->send_scratch == NULL || team->recv_scratch == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for message buffers of %zu bytes",
                        slots * (team->geometry.slot_bytes + team->geometry.recv_bytes));
    }
    return 0;
}

int hvd_team_init(struct hvd_team *team, const struct hvd_boot *boot, const int *ranks,
                  int count, struct hvd_error *err)
{
    int status;

    team->ranks = calloc((size_t)count, sizeof(team->ranks[0]));
    team->flows = calloc((size_t)count, sizeof(team->flows[0]));
    if (team->ranks == NULL || team->flows == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks", count);
    }
    memcpy(team->ranks, ranks, (size_t)count * sizeof(ranks[0]));
    status = init_layout(team, boot, count, err);
    if (status != 0) {
        return status;
    }
    team->rank = hvd_team_member(team, boot->rank);
    team->base = hvd_shm_region_base(team->region);
    team->shm = hvd_shm_region_memory(team->region);
    hvd_algorithm_table_choose(team->algorithms, hvd_job_shape_here(team->layout),
                               &team->choices);
    status = init_local_ranks(team, boot);
    if (status != 0) {
        return hvd_fail(err, status, "no memory for a team of %d ranks", count);
    }
    return init_scratch(team, err);
}

void hvd_team_finish(struct hvd_team *team)
{
    struct hvd_layout *layout = (struct hvd_layout *)team->layout;

    if (layout != NULL) {
        hvd_layout_finish(layout);
    }
    free(layout);
    free(team->ranks);
    free(team->flows);
    free(team->local_ranks);
    free(team->send_scratch);
    free(team->recv_scratch);
    *team = (struct hvd_team){0};
}

static int compare_ranks(const void *a, const void *b)
{
    const int *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

int hvd_team_member(const struct hvd_team *team, int rank)
{
    const int *found = bsearch(&rank, team->ranks, (size_t)team->layout->size,
                               sizeof(team->ranks[0]), compare_ranks);

    return found != NULL ? (int)(found - team->ranks) : -1;
}

struct hvd_net_flow *hvd_team_flow(struct hvd_team *team, int member)
{
    if (team->flows[member] == NULL) {
        team->flows[member] =
            hvd_net_flow_get(team->net, team->ranks[member], team->channel);
    }
    return team->flows[member];
}

char *hvd_team_address(const struct hvd_team *team, const struct hvd_location *location)
{
    size_t slot = (size_t)location->slot;
    uint64_t slots =
        location->kind == HVD_LOCATION_LINE ? 2 : (uint64_t)team->geometry.slots;

    switch (location->kind) {
    case HVD_LOCATION_SEND:
        return team->send_scratch + slot * team->geometry.slot_bytes + location->offset;
    case HVD_LOCATION_RECV:
        return team->recv_scratch + slot * team->geometry.recv_bytes + location->offset;
    default: /* slots of shared memory turn, see schedule.h */
        return hvd_shm_region_slot(team->region, location->kind,
                                   team->local_ranks[location->local_rank],
                                   (int)((slot + team->turn) % slots)) +
               location->offset;
    }
}

void hvd_team_begin(struct hvd_team *team, const struct hvd_schedule_facts *schedule)
{
    if (team->is_open && (schedule->turns == 0 || schedule->is_rolling)) {
        hvd_shm_region_signal(team->region);
        team->base++;
        team->is_open = false;
    }
    if (!schedule->is_rolling || !team->is_rolling) {
        team->floor = team->base;
    }
    team->is_rolling = schedule->is_rolling;
}

void hvd_team_end(struct hvd_team *team, const struct hvd_schedule_facts *schedule)
{
    team->base += schedule->signals;
    team->turn += (uint64_t)schedule->turns;
    team->is_open = team->is_open || (schedule->turns > 0 && !team->is_rolling);
}

bool hvd_team_await(const struct hvd_team *team, int local_rank, uint64_t value,
                    int looks)
{
    uint64_t awaited = team->base + value;

    return hvd_shm_region_await(team->region, team->local_ranks[local_rank],
                                awaited > team->floor ? awaited : team->floor, looks);
}
