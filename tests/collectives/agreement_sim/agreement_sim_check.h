/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the promises that every simulated job must keep:
 *
 *   all ranks of a team start the same batches in the same order, with the same rows
 *   the tensors of a batch, including zeros, have one dtype, wire type and op
 *   in a batch, the k-th use of a name since the last join is the k-th on all ranks
 *   each use of a name ends once, and in the same way on all ranks
 *   no rank gets results of a replayed batch that a rank has not started with its tensors
 *   allgather knows the rows of all ranks, alltoall the largest block
 *   at the end nothing is left: no batch, no message, no ready tensor, no entry */
#ifndef HVD_AGREEMENT_SIM_CHECK_H
#define HVD_AGREEMENT_SIM_CHECK_H

#include "tests/collectives/agreement_sim/agreement_sim.h"

struct sim_check *sim_check_create(struct sim *sim);
void sim_check_destroy(struct sim_check *check); /* NULL is fine */

/* Check the tensors that a rank submits, its batches, and how its tensors end. Called as
 * these events happen. */
void sim_check_submit(struct sim_rank *rank, const struct hvd_entry *entry);
void sim_check_start(struct sim_rank *rank, int team, int64_t number,
                     const struct hvd_batch *batch);
void sim_check_finish(struct sim_rank *rank, int team, int64_t number,
                      const struct hvd_batch *batch);
void sim_check_end(struct sim_rank *rank, const struct hvd_entry *entry, int status,
                   const char *text);
void sim_check_remove(struct sim_rank *rank, int team);

void sim_check_rest(struct sim *sim); /* checks a job in which nothing happens any more */
void sim_check_forget(struct sim_round *round);

#endif
