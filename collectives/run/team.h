/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run collectives together in one order, and the resources they share for
 * it.
 *
 * Members are numbered from 0 in ascending order of their rank in the job. Schedules,
 * blocks and splits use these numbers. Only the team converts them to ranks of the job,
 * for the net, and to local ranks on the node, for shared memory. */
#ifndef HVD_TEAM_H
#define HVD_TEAM_H

#include "collectives/schedule/algorithm_table.h"
#include "collectives/schedule/schedule.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/shm_region.h"
#include "pmix_boot/boot.h"

struct hvd_team {
    /* Set by the caller, borrowed. */
    struct hvd_net *net; /* NULL when all ranks of the job are on one node */
    struct hvd_shm_region *region;
    uint32_t channel; /* channel of the net; keeps messages of different teams apart */
    struct hvd_geometry geometry;
    const struct hvd_algorithm_table *algorithms; /* NULL: the built-in table */
    /* Set by init. */
    struct hvd_shm *shm; /* shared memory to which the region belongs */
    struct hvd_algorithm_choices choices; /* for the layout of the members */
    const struct hvd_layout *layout; /* layout of the members */
    int rank; /* this rank's number among the members */
    int node; /* this rank's node, in layout */
    int local_rank; /* this rank's, among the members on its node */
    int local_size; /* members on this rank's node */
    int *ranks; /* [size]: ranks in the job */
    struct hvd_net_flow **flows; /* [size]: on the channel; NULL until first use */
    int *local_ranks; /* [local_size]: local ranks on the node */
    char *send_scratch; /* NULL when the members are on one node */
    char *recv_scratch;
    uint64_t base; /* value of every member's counter at which the next schedule starts */
    uint64_t turn; /* chunks of open and rolling schedules so far; see schedule.h */
    bool is_open; /* the last schedule was open */
    bool is_rolling; /* the last schedule was rolling */
    /* least value of every member's counter before any wait of the current schedule
     * ends */
    uint64_t floor;
};

/* Completes a team whose borrowed fields are set. ranks: ascending ranks of the job,
 * including this one (copied). Returns 0 or a failure; call hvd_team_finish in either
 * case. */
int hvd_team_init(struct hvd_team *team, const struct hvd_boot *boot, const int *ranks,
                  int count, struct hvd_error *err);
void hvd_team_finish(struct hvd_team *team); /* a zeroed struct is fine */

/* Returns the member with this rank in the job, or -1. */
int hvd_team_member(const struct hvd_team *team, int rank);

/* Returns the flow of messages between this rank and a member; NULL if memory is out. */
struct hvd_net_flow *hvd_team_flow(struct hvd_team *team, int member);

/* Returns the memory of a location: this rank's or, for IN, OUT and LINE, another local
 * rank's. */
char *hvd_team_address(const struct hvd_team *team, const struct hvd_location *location);

/* Call these before and after each schedule: begin sends the signal that the last
 * schedule omitted, if the new one needs it; end advances counters and slots. */
void hvd_team_begin(struct hvd_team *team, const struct hvd_schedule_facts *schedule);
void hvd_team_end(struct hvd_team *team, const struct hvd_schedule_facts *schedule);

/* Whether a member on this rank's node has signalled often enough: its counter has
 * reached base + value. Looks `looks` times, at least once. local_rank is the member's in
 * layout. */
bool hvd_team_await(const struct hvd_team *team, int local_rank, uint64_t value,
                    int looks);

#endif
