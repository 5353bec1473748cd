/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of tensors that lie where all ranks of the node map them. Private to
 * collectives/execute. */
#ifndef HVD_RUN_SHARED_H
#define HVD_RUN_SHARED_H

#include "collectives/execute/run_state.h"

/* Finds the places of the run's tensors, which its output has. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_run_shared_plan(struct hvd_run *run);

void hvd_run_offer_shared(struct hvd_run *run, const struct hvd_step *step);

/* Returns 0, HVD_INPROGRESS when another rank has died, or a failure. */
int hvd_run_reduce_shared(struct hvd_run *run, const struct hvd_step *step);

#endif
