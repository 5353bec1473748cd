/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the schedules of all ranks in one thread, with their steps in random order and
 * their locations in ordinary memory. Before a step writes memory, this memory holds
 * garbage while other ranks go on. So a rank that reads too early, or overwrites too
 * early, ends with a wrong result. */
#ifndef HVD_SIM_H
#define HVD_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/schedule.h"
#include "collectives/reduce/reduce.h"

/* One collective of all ranks; arrays have one entry per rank. */
struct sim_job {
    struct hvd_schedule_query *queries;
    struct hvd_schedule **schedules;
    enum hvd_dtype dtype; /* dtype of a reduction */
    enum hvd_op op;
    double postscale;
    int grid_levels; /* levels of the grid, as in struct hvd_algorithm_choices */
    char **inputs;
    char **outputs;
    int64_t *input_bytes;
    int64_t *output_bytes;
};

/* The relative speed of the ranks and of the network. */
enum sim_mood {
    SIM_EVEN, /* all alike */
    SIM_ONE_IS_SLOW, /* one rank moves only when nothing else can */
    SIM_SLOW_NETWORK, /* messages move only when no rank can */
    SIM_MOODS,
};

struct sim_options {
    enum sim_mood mood;
    bool has_eager_sends; /* some sends complete before they are received */
    uint64_t seed;
};

/* Runs the jobs one after the other on every rank; no rank waits for others between jobs.
 * Returns true, or false after a note of the failure: a deadlock, an access out of
 * bounds, signals or messages that do not add up. Does not check the outputs. */
bool sim_run(const struct hvd_layout *layout, const struct hvd_geometry *geometry,
             const struct sim_job *jobs, int job_count,
             const struct sim_options *options);

#endif
