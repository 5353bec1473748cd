/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch: executes its schedules, stopping wherever it would have to
 * wait. */
#ifndef HVD_RUN_H
#define HVD_RUN_H

#include <stdbool.h>

#include "collectives/request/batch.h"
#include "collectives/run/team.h"

struct hvd_run;

/* Prepares the batch that header describes. entries[i] is this rank's entry for the i-th
 * tensor; the array is copied, the entries are borrowed. rows[r] is rank r's first
 * dimension; it is for allgather and gather only, and is copied. Allocates outputs that
 * the library owns. The caller owns *out. team must outlive the run. A team executes one
 * run at a time, in the same order on all ranks. */
int hvd_run_create(struct hvd_team *team, const struct hvd_batch_header *header,
                   struct hvd_entry *const *entries, const int64_t *rows,
                   struct hvd_run **out, struct hvd_error *err);

/* Works, without waiting, until it has touched about *work bytes, and subtracts the bytes
 * touched from *work. Returns 0 when the batch is done, HVD_INPROGRESS, or a failure
 * after which the team is unusable. Sets *moved if it executed any step. */
int hvd_run_progress(struct hvd_run *run, int64_t *work, bool *moved);

/* Call it after the batch of a finished run has ended. Returns the run, with its
 * schedule, for the next similar batch. Destroys the run and returns NULL if it is not an
 * allreduce or holds much memory. */
struct hvd_run *hvd_run_retire(struct hvd_run *run);

/* Runs another batch on a retired run of its team, if the batch differs from the last one
 * only in its tensors. Otherwise it destroys the run and returns NULL. */
struct hvd_run *hvd_run_restart(struct hvd_run *run,
                                const struct hvd_batch_header *header,
                                struct hvd_entry *const *entries);

/* Starts a finished run again, with the current values of its tensors. It reuses memory
 * that the library allocated, and an alltoall has the same splits. Returns 0, or
 * HVD_ERR_ARG for Adasum, which creates schedules while it runs. */
int hvd_run_again(struct hvd_run *run);

/* Makes the run, and messages that arrive later, leave the memory of the tensors
 * alone. */
void hvd_run_forget(struct hvd_run *run);

/* Lets the run go on without its tensors: its inputs are zeros and its outputs are
 * dropped. entries: zeros that replace the old ones. */
void hvd_run_cancel(struct hvd_run *run, struct hvd_entry *const *entries);

/* Destroys a run; NULL is fine. After a failure destroy the net first, which may still
 * hold the run's messages. */
void hvd_run_destroy(struct hvd_run *run);

#endif
