/* SPDX-License-Identifier: Apache-2.0 */
/* Plans an alltoall: two schedules, for first the ranks tell each other how many rows
 * come. Private to collectives/execute. */
#ifndef HVD_RUN_ALLTOALL_H
#define HVD_RUN_ALLTOALL_H

#include "collectives/execute/run_state.h"

/* The first schedule, and when it has ended the second one, for which the output is
 * allocated. Return 0 or a failure. */
int hvd_run_alltoall_counts(struct hvd_run *run, struct hvd_error *err);
int hvd_run_alltoall_data(struct hvd_run *run);

#endif
