/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of a core for what a rank does, when nobody is in its way. */
#ifndef HVD_SIMULATE_WORK_H
#define HVD_SIMULATE_WORK_H

#include "collectives/schedule/schedule.h"
#include "contrib/bench/simulate/machine.h"

/* A message, at either end; the network sends long ones in parts. */
double simulate_message_work(const struct simulate_machine *machine, double bytes);

/* Where a rank is. */
struct simulate_seat {
    int local_rank;
    int local_size;
    int cores; /* that the ranks of its node are on: rank r on core r % cores */
    bool is_read_by_all; /* what it puts; else by one of the others */
};

/* A step of a rank. Waits take no time; what RECV_REDUCE adds up is not in it. */
double simulate_step_work(const struct simulate_machine *machine,
                          struct simulate_seat seat, const struct hvd_step *step);

/* What a rank does with what has come for a receive: RECV_REDUCE adds it up. */
double simulate_receive_work(const struct simulate_machine *machine,
                             const struct hvd_step *step);

#endif
