/* SPDX-License-Identifier: Apache-2.0 */
/* Random collectives with their data and their expected results. */
#ifndef HVD_SCHEDULE_JOBS_H
#define HVD_SCHEDULE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/collectives/schedule/sim.h"

enum {
    JOBS_MOST_RANKS = 160
};

/* Returns a number below end. The sequence depends only on the seed, which must not be
 * 0. */
uint64_t jobs_random_below(uint64_t *random, uint64_t end);

/* Places ranks on nodes in one of several ways. The caller ends the layout with
 * hvd_layout_finish. */
void jobs_random_layout(uint64_t *random, int most_ranks, int most_nodes,
                        struct hvd_layout *layout);

/* Places each rank on a node of its own. */
void jobs_lone_layout(int ranks, struct hvd_layout *layout);

/* Returns a geometry that the layout fits, small so that little data makes many
 * chunks. */
struct hvd_geometry jobs_random_geometry(uint64_t *random,
                                         const struct hvd_layout *layout);

/* Fills *job with inputs and schedules of a collective of up to several chunks. Returns 0
 * or the error of hvd_schedule_create. The caller ends the job with jobs_finish, also
 * after a failure. */
int jobs_make(uint64_t *random, enum hvd_collective collective,
              const struct hvd_layout *layout, const struct hvd_geometry *geometry,
              struct sim_job *job);

/* Compares the outputs with a plain computation; a note describes the first
 * difference. */
bool jobs_are_right(const struct hvd_layout *layout, const struct sim_job *job);

void jobs_finish(const struct hvd_layout *layout, struct sim_job *job);

#endif
