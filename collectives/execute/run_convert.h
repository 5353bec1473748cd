/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an allreduce of float32 tensors that travel as 16-bit floats. Private to
 * collectives/execute*.c. */
#ifndef HVD_RUN_CONVERT_H
#define HVD_RUN_CONVERT_H

#include "collectives/execute/run_state.h"

/* Takes over input and output of the run, which are the tensors, and puts one array in their place
 * for the schedule to work on, half as large. Returns 0 or HVD_ERR_NOMEM; what was allocated ends
 * with hvd_run_convert_destroy. */
int hvd_run_convert_plan(struct hvd_run *run);

/* What hvd_run_next_schedule does in such a run, and hvd_run_again. */
void hvd_run_convert_next(struct hvd_run *run);
void hvd_run_convert_again(struct hvd_run *run);

/* While run->is_computing: converts until it has touched about *work bytes, which it lowers by
 * what it did. Returns 0 when that is done, else HVD_INPROGRESS. Sets *moved if it did any. */
int hvd_run_convert_compute(struct hvd_run *run, int64_t *work, bool *moved);

/* The tensors are not touched any more. The array stays: others may still read it, and messages
 * that come later be written to it. */
void hvd_run_convert_forget(struct hvd_run_convert *convert);

void hvd_run_convert_destroy(struct hvd_run_convert *convert); /* NULL is fine */

#endif
