/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the schedules of all ranks in one thread, in a random order of their steps, with
 * places in ordinary memory. What is about to be written holds garbage first, while
 * others go on: whoever reads too early, or overwrites too early, ends with a wrong
 * result. */
#ifndef HVD_SIM_H
#define HVD_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/schedule.h"
#include "collectives/reduce/reduce.h"

/* One collective of all ranks; arrays have one entry a rank. */
struct sim_job {
    struct hvd_schedule_query *queries;
    struct hvd_schedule **schedules;
    enum hvd_dtype dtype; /* of reductions */
    enum hvd_op op;
    double postscale;
    int grid_levels; /* as in hvd_algorithms */
    char **inputs;
    char **outputs;
    int64_t *input_bytes;
    int64_t *output_bytes;
};

/* How the ranks and the network go on. */
enum sim_mood {
    SIM_EVEN, /* all alike */
    SIM_ONE_IS_SLOW, /* one rank moves only when nothing else can */
    SIM_SLOW_NETWORK, /* messages move only when no rank can */
    SIM_MOODS,
};

struct sim_options {
    enum sim_mood mood;
    bool has_eager_sends; /* some sends end before they are received */
    uint64_t seed;
};

/* Runs the jobs one after the other on every rank, none waiting for the others between
 * jobs. Returns true, or false after a note of what went wrong: a deadlock, a place out
 * of bounds, signals or messages that do not add up. Does not look at outputs. */
bool sim_run(const struct hvd_layout *layout, const struct hvd_geometry *geometry,
             const struct sim_job *jobs, int job_count,
             const struct sim_options *options);

#endif
