/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up what another node sends, while it comes. Private to collectives/execute. */
#ifndef HVD_RUN_TAKE_H
#define HVD_RUN_TAKE_H

#include "collectives/execute/run_state.h"

/* Posts the receive of a RECV_REDUCE step. Returns 0 or HVD_ERR_NOMEM. */
int hvd_run_recv_reduce(struct hvd_run *run, const struct hvd_step *step);

#endif
