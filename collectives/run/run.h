/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch: executes its schedule, stopping wherever it would have to
 * wait. */
#ifndef HVD_RUN_H
#define HVD_RUN_H

#include <stdbool.h>

#include "collectives/request/batch.h"
#include "collectives/run/team.h"

struct hvd_run;

/* Prepares the batch that header describes. entries[i] is this rank's entry for its i-th
 * tensor (array copied, entries borrowed); rows[r] is rank r's first dimension (allgather
 * only, copied). Allocates outputs that the library owns. The caller owns *out. team must
 * outlive the run and runs one run at a time, in the same order on all ranks. */
int hvd_run_create(struct hvd_team *team, const struct hvd_batch_header *header,
                   struct hvd_entry *const *entries, const int64_t *rows,
                   struct hvd_run **out, struct hvd_error *err);

/* Does what can be done without waiting, until it has touched about *work bytes, which it
 * lowers by what it did. Returns 0 when the batch is done, HVD_INPROGRESS, or a failure
 * after which the team is unusable. Sets *moved if any step was done. */
int hvd_run_progress(struct hvd_run *run, int64_t *work, bool *moved);

/* The batch of a run that is done has ended. Returns the run, whose schedule waits for
 * the next batch like it; or NULL: the run adds nothing up or has much memory, and is
 * destroyed. */
struct hvd_run *hvd_run_retire(struct hvd_run *run);

/* A run that has retired takes another batch of its team, if only the tensors themselves
 * differ from those of its last one. Returns the run, or NULL: the run did not fit and is
 * destroyed. */
struct hvd_run *hvd_run_restart(struct hvd_run *run,
                                const struct hvd_batch_header *header,
                                struct hvd_entry *const *entries);

/* Restarts a run that is done, with the present values of its tensors; memory that the
 * library allocated is reused, and an alltoall has the same splits. HVD_ERR_ARG for
 * Adasum, which makes schedules while it runs. */
int hvd_run_again(struct hvd_run *run);

/* Neither the run nor messages that arrive later touch the tensors' memory any more. */
void hvd_run_forget(struct hvd_run *run);

/* The run goes on without its tensors: zeros go in, what comes out is dropped. entries:
 * the zeros that replace the old ones. */
void hvd_run_cancel(struct hvd_run *run, struct hvd_entry *const *entries);

/* After a failure destroy the net first, which may still hold its messages. */
void hvd_run_destroy(struct hvd_run *run);

#endif
