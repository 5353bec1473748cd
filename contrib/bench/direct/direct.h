/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once, as MPI does: without name, agreement
 * or fusion. For benchmarks and tests; not exported.
 *
 * Between open and close only the caller may use the job: other threads must not submit,
 * and all ranks must make the same calls in the same order. */
#ifndef HVD_DIRECT_H
#define HVD_DIRECT_H

#include "collectives/api/api_start.h"

struct hvd_direct;

/* Takes over the job, in which no request may be in progress. */
int hvd_direct_open(struct hvd_error *err);
void hvd_direct_close(void);

struct hvd_algorithm_choices;

/* Sets the algorithms for plans that are made later, the same on all ranks (borrowed).
 * NULL: the job's algorithms. */
void hvd_direct_choose(const struct hvd_algorithm_choices *choices);

/* Prepares a collective of one tensor, or an allreduce of several, which can then run any
 * number of times. start: as for hvd_start_submit, on the global set, without Adasum.
 * Allgather: all ranks have the same number of rows. Alltoall: the largest split is the
 * same on all ranks. Inputs and outputs are borrowed until destroy. The caller owns *out.
 */
int hvd_direct_plan(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                    struct hvd_direct **out, struct hvd_error *err);

/* Runs the collective to its end, without sleeping. */
int hvd_direct_run(struct hvd_direct *direct, struct hvd_error *err);

/* Returns the result of an allgather, or of an alltoall that has run, valid until
 * destroy; NULL for other collectives. */
const void *hvd_direct_result(const struct hvd_direct *direct);

void hvd_direct_destroy(struct hvd_direct *direct); /* NULL is allowed */

#endif
