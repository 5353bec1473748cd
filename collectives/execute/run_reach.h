/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that reach into the memory of other ranks of the node, and COPY. Private to
 * collectives/execute. */
#ifndef HVD_RUN_REACH_H
#define HVD_RUN_REACH_H

#include "collectives/execute/run_state.h"

void hvd_run_copy(struct hvd_run *run, const struct hvd_step *step);
void hvd_run_offer(struct hvd_run *run, const struct hvd_step *step);

/* Return 0, HVD_INPROGRESS when the other rank has died, or a failure. */
int hvd_run_fetch(struct hvd_run *run, const struct hvd_step *step);
int hvd_run_fetch_reduce(struct hvd_run *run, const struct hvd_step *step);
int hvd_run_store(struct hvd_run *run, const struct hvd_step *step);

#endif
