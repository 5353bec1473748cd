/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once, as MPI does: no name, no agreement,
 * no fusion. For benchmarks and tests; not exported.
 *
 * Between open and close the job is the caller's alone: other threads must not submit,
 * and all ranks make the same calls in the same order. */
#ifndef HVD_DIRECT_H
#define HVD_DIRECT_H

#include "collectives/api/api_start.h"

struct hvd_direct;

/* Takes the job over, in which nothing is under way. */
int hvd_direct_open(struct hvd_error *err);
void hvd_direct_close(void);

struct hvd_algorithm_choices;

/* Plans from now on go by these algorithms (borrowed), NULL: by the job's again. The same
 * on all ranks. */
void hvd_direct_choose(const struct hvd_algorithm_choices *choices);

/* Prepares a collective of one tensor, or an allreduce of several, to be run as often as
 * wanted: start as for hvd_start_submit, of the global set, without Adasum. Allgather:
 * all ranks have as many rows. Alltoall: the largest split is the same on all of them.
 * Inputs and outputs are borrowed until destroy. The caller owns *out. */
int hvd_direct_plan(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                    struct hvd_direct **out, struct hvd_error *err);

/* Runs it to its end, without sleeping. */
int hvd_direct_run(struct hvd_direct *direct, struct hvd_error *err);

/* Where the result of an allgather is, or of an alltoall that has run, until destroy;
 * NULL for others. */
const void *hvd_direct_result(const struct hvd_direct *direct);

void hvd_direct_destroy(struct hvd_direct *direct); /* NULL is fine */

#endif
