/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the interface that must succeed: a failure is printed and ends the process
 * with 1. */
#ifndef HVD_TEST_CALLS_H
#define HVD_TEST_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"

/* Calls hvd_init; returns this rank. */
int call_init(void);

/* Waits for a request whose start returned `started`. */
void call_finish(int started, struct hvd_request **request, struct hvd_error *err);

/* Run a collective from its start to the end of its request. */
void call_allreduce(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                    double prescale, double postscale, int set);
void call_reducescatter(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                        double prescale, double postscale, int set);
void call_broadcast(const struct hvd_tensor *tensor, int root, int set);
void call_barrier(void);

/* Sums a one from each rank of the job; returns whether the result is right. */
bool call_sums_ones(const char *name);

/* Adds a process set, on all ranks; returns its number. */
int call_set_add(const int *ranks, int count);
void call_set_remove(int set);

/* Returns the seed of rank 0, which prints it, on all ranks. */
uint32_t call_seed(void);

/* Returns the next random number below 2^24. *state starts with a seed; states that are
 * equal give the same numbers. */
uint32_t call_random(uint32_t *state);

/* Joins, and waits until all ranks have joined. */
void call_join(void);

/* Whether all ranks hold the same bytes; collective. */
bool call_is_same(const void *data, size_t bytes);

/* Returns a tensor in host memory; it is in place if output is input. */
struct hvd_tensor call_tensor(const char *name, enum hvd_dtype dtype,
                              const int64_t *shape, int ndim, const void *input,
                              void *output);

#endif
