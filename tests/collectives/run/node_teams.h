/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of all ranks of one node, which are all in one thread of the test. */
#ifndef HVD_NODE_TEAMS_H
#define HVD_NODE_TEAMS_H

#include "collectives/run/run.h"
#include "collectives/run/team.h"

enum {
    MOST_RANKS = 8,
};

/* All ranks of the node; the first `ranks` of them are in the team. */
struct node {
    int ranks;
    int bells[MOST_RANKS];
    struct hvd_boot_peer peers[MOST_RANKS];
    struct hvd_boot boot;
    struct hvd_shm *shm[MOST_RANKS];
    struct hvd_shm_region *region[MOST_RANKS];
    struct hvd_team team[MOST_RANKS];
};

/* Ends the test program if status is not 0. */
void must(int status, const struct hvd_error *err);

void node_open(struct node *node, int ranks);
void node_close(struct node *node);

/* Completes a run of each rank, in turns of `turn` bytes of work; a failure ends the test
 * program. Returns the most bytes by which one turn exceeded `turn`. */
int64_t node_finish_runs(struct hvd_run *const *runs, int ranks, int64_t turn);

#endif
