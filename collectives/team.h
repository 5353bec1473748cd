/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that run a collective together, and what they share for it. */
#ifndef HVD_TEAM_H
#define HVD_TEAM_H

#include "collectives/net.h"
#include "collectives/schedule.h"
#include "collectives/shm.h"

/* Everything is borrowed but the scratch, which team_finish frees. Zeroed is fine for finish. */
struct hvd_team {
    const struct hvd_layout *layout;
    int rank; /* mine, in layout */
    uint32_t channel; /* of the net: messages of different teams do not mix */
    struct hvd_geometry geometry;
    struct hvd_shm *shm;
    struct hvd_net *net; /* NULL when all ranks are on one node */
    char *send_scratch;
    char *recv_scratch;
    uint64_t base; /* value of every local rank's counter when the next schedule starts */
};

/* Allocates the scratch that the geometry asks for (none on one node). The other members are
 * set before. Returns 0 or HVD_ERR_NOMEM. */
int hvd_team_init(struct hvd_team *team, struct hvd_error *err);
void hvd_team_finish(struct hvd_team *team);

/* Memory of a place, this rank's or (IN, OUT) another local rank's. */
char *hvd_team_place(const struct hvd_team *team, const struct hvd_place *place);

int hvd_team_node(const struct hvd_team *team);
int hvd_team_local_rank(const struct hvd_team *team);
int hvd_team_local_size(const struct hvd_team *team);

#endif
