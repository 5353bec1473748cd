/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run collectives together in one order, and what they share for it.
 *
 * Members count from 0 in ascending order of their rank in the job; schedules, blocks and
 * splits go by that number. Only here it becomes the job's rank, for the net, and the
 * local rank on the node, for shared memory. */
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
    uint32_t channel; /* of the net: messages of different teams do not mix */
    struct hvd_geometry geometry;
    const struct hvd_algorithm_table *algorithms; /* NULL: the built-in table */
    /* Set by init. */
    struct hvd_shm *shm; /* of the region */
    struct hvd_algorithm_choices choices; /* for the members' shape */
    const struct hvd_layout *layout; /* of the members */
    int rank; /* mine, in layout */
    int node; /* mine */
    int local_rank; /* mine, in layout */
    int local_size; /* members on my node */
    int *ranks; /* [size] in the job */
    struct hvd_net_flow **flows; /* [size] on the channel, NULL until first use */
    int *local_ranks; /* [local_size] on the node */
    char *send_scratch; /* NULL when the members are on one node */
    char *recv_scratch;
    uint64_t base; /* value of every member's counter when the next schedule starts */
    uint64_t turn; /* chunks of open and rolling schedules so far; see schedule.h */
    bool is_open; /* the last schedule was open */
    bool is_rolling; /* the last schedule was rolling */
    uint64_t floor; /* of every counter, before the present schedule goes on */
};

/* Completes a team whose borrowed members are set. ranks: ascending ranks of the job,
 * this one among them (copied). Returns 0 or a failure; ends with finish in any case. */
int hvd_team_init(struct hvd_team *team, const struct hvd_boot *boot, const int *ranks,
                  int count, struct hvd_error *err);
void hvd_team_finish(struct hvd_team *team); /* zeroed is fine */

/* The member with this rank in the job, or -1. */
int hvd_team_member(const struct hvd_team *team, int rank);

/* The messages of this rank and a member, by its rank in layout. NULL when memory is
 * out. */
struct hvd_net_flow *hvd_team_flow(struct hvd_team *team, int member);

/* Memory of a place, this rank's or (IN, OUT) another local rank's. */
char *hvd_team_address(const struct hvd_team *team, const struct hvd_location *location);

/* Between two schedules: what the next one needs, and what the last one has left. */
void hvd_team_begin(struct hvd_team *team, const struct hvd_schedule_facts *schedule);
void hvd_team_end(struct hvd_team *team, const struct hvd_schedule_facts *schedule);

/* Whether a member of my node, by its local rank in layout, has signalled often enough:
 * its counter has reached base + value. Looks so often, at least once. */
bool hvd_team_await(const struct hvd_team *team, int local_rank, uint64_t value,
                    int looks);

#endif
