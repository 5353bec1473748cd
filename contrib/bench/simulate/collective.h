/* SPDX-License-Identifier: Apache-2.0 */
/* How long an allreduce takes on a machine: the schedules of collectives/schedule/, step
 * by step, with the time that each step takes instead of its data. */
#ifndef HVD_SIMULATE_COLLECTIVE_H
#define HVD_SIMULATE_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "contrib/bench/simulate/machine.h"

struct simulate_result {
    double seconds;
    char algorithm[16];
    int64_t messages; /* sent by the busiest rank */
    bool is_mirrored; /* one node was simulated for all */
    bool is_extrapolated; /* some chunks were simulated for all */
};

/* One allreduce of `bytes` of float32, all ranks starting together. Steady state: the
 * first chunks are simulated, and the time per chunk of the later of them goes on.
 *
 * When all nodes do the same, one is simulated and stands for its peers: the k-th message
 * that one of its ranks sends to some local rank is the k-th that this one gets from it.
 * Otherwise, and with is_whole, all ranks are simulated. Without memory the program
 * ends. */
int simulate_allreduce(const struct simulate_machine *machine, double bytes,
                       bool is_whole, struct simulate_result *result,
                       struct hvd_error *err);

#endif
