/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a batch with the op Adasum: several schedules, one after the other. Private to
 * collectives/execute*.c. */
#ifndef HVD_RUN_ADASUM_H
#define HVD_RUN_ADASUM_H

#include "collectives/execute/run_state.h"

/* Plans the first schedule; needs as much memory as the batch has elements, in float or, for
 * float64, in double. The number of ranks is a power of two. Returns 0 or HVD_ERR_NOMEM; what
 * was allocated ends with hvd_run_adasum_destroy. */
int hvd_run_adasum_plan(struct hvd_run *run, struct hvd_error *err);

/* What hvd_run_next_schedule does in such a run. */
int hvd_run_adasum_next(struct hvd_run *run);

/* While run->is_computing: computes until it has touched about *work bytes, which it lowers by
 * what it did. Returns 0 when that is done, else HVD_INPROGRESS. Sets *moved if it did any. */
int hvd_run_adasum_compute(struct hvd_run *run, int64_t *work, bool *moved);

void hvd_run_adasum_destroy(struct hvd_run_adasum *adasum); /* NULL is fine */

#endif
