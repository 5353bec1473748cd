/* SPDX-License-Identifier: Apache-2.0 */
/* How near the cores of a node's ranks are: what it takes to hand over a cache line. A virtual
 * machine's host may move cores between one cache and another at any moment, which changes
 * every time of small messages by several times. */
#ifndef HVD_BENCH_PLACEMENT_H
#define HVD_BENCH_PLACEMENT_H

#include "contrib/bench/hvd_bench/job.h"

struct bench_placement;

/* Collective; the caller destroys *out. */
int bench_placement_create(const struct bench_job *job, struct bench_placement **out,
                           struct hvd_error *err);
void bench_placement_destroy(struct bench_placement *placement);

/* Collective. Nanoseconds one way between the first two ranks of a node, on the node where it
 * takes longest; 0 where no node has two ranks with a core for each. Takes a millisecond. */
int bench_placement_probe(struct bench_placement *placement, double *ns,
                          struct hvd_error *err);

#endif
