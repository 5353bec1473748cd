/* SPDX-License-Identifier: Apache-2.0 */
/* Computes how long an allreduce takes on a machine: it runs the schedules of
 * collectives/schedule, step by step, with the time of each step instead of its data. */
#ifndef HVD_SIMULATE_COLLECTIVE_H
#define HVD_SIMULATE_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "contrib/bench/simulate/machine.h"

struct simulate_result {
    double seconds;
    char algorithm[16];
    int64_t messages; /* messages that the busiest rank sends */
    bool is_mirrored; /* one node was simulated for all */
    bool is_extrapolated; /* some chunks were simulated for all */
};

/* Simulates an allreduce of `bytes` of float32 that all ranks start together. For large
 * sizes only the first chunks are simulated; the time of each further chunk is
 * extrapolated from their second half.
 *
 * If all nodes do the same, one node is simulated and stands for the others: a message to
 * a rank of another node is delivered to the rank of this node that has the same local
 * rank. Otherwise, and with is_whole, all ranks are simulated. The program ends if it is
 * out of memory. */
int simulate_allreduce(const struct simulate_machine *machine, double bytes,
                       bool is_whole, struct simulate_result *result,
                       struct hvd_error *err);

#endif
