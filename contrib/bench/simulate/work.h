/* SPDX-License-Identifier: Apache-2.0 */
/* The seconds of a rank's work, if it has the memory of its node alone. */
#ifndef HVD_SIMULATE_WORK_H
#define HVD_SIMULATE_WORK_H

#include "collectives/schedule/schedule.h"
#include "contrib/bench/simulate/machine.h"

/* A message, at either end; the network sends long ones in parts. */
double simulate_message_work(const struct simulate_machine *machine, double bytes);

/* A step of a rank on a node of `local_size` ranks. Waits take no time; the sum of RECV_REDUCE is
 * not in it. */
double simulate_step_work(const struct simulate_machine *machine, int local_size,
                          const struct hvd_step *step);

/* The sum that RECV_REDUCE makes of a message; 0 of any other receive. */
double simulate_receive_work(const struct simulate_machine *machine,
                             const struct hvd_step *step);

#endif
