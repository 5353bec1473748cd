/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of the teams test. It has shared memory, network and teams, but neither
 * agreement nor progress thread. */
#ifndef HVD_TEST_TEAMS_RANK_H
#define HVD_TEST_TEAMS_RANK_H

#include "collectives/run/teams.h"
#include "collectives/set/sets.h"
#include "collectives/transport/net/net.h"
#include "tests/collectives/run/team_calls.h"
#include "tests/collectives/job.h"

struct teams_rank {
    struct job_rank *self;
    struct hvd_shm *shm;
    struct hvd_net *net; /* NULL on one node */
    struct hvd_sets sets;
    struct hvd_teams *teams;
    int wrong; /* batches that ended with a wrong result */
    int ended; /* batches that ended */
    struct team_call last; /* the call that ended last */
};

/* Open and close the resources that the ranks of a node share. The test calls them before
 * job_start and after the job. */
void teams_job_open(const char *hosts);
void teams_job_close(void);

/* Returns the shared file of the ranks of node 0. */
int teams_job_memory(void);

/* Called in a rank; on failure they print the reason and exit. teams_rank_leave is a
 * barrier. Meanwhile the test calls net_rank_serve_connect for join if there are several
 * nodes, and job_serve_exchange for leave. */
void teams_rank_join(struct teams_rank *rank, struct job_rank *self);
void teams_rank_leave(struct teams_rank *rank);

void teams_rank_add(struct teams_rank *rank, int set, const int *ranks, int count);
void teams_rank_remove(struct teams_rank *rank, int set);
void teams_rank_submit(struct teams_rank *rank, const struct team_call *call);

/* Lets the network and the teams make progress once; returns true if anything moved. */
bool teams_rank_turn(struct teams_rank *rank);

/* Makes progress until `ended` batches have ended since join. Returns false after a
 * minute. */
bool teams_rank_run(struct teams_rank *rank, int ended);

#endif
