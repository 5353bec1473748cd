/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the ranks of a node share, beside hvd's. */
#ifndef HVD_BENCH_NODE_MEMORY_H
#define HVD_BENCH_NODE_MEMORY_H

#include <stddef.h>

#include "contrib/bench/hvd_bench/job.h"

/* Collective over the job: each node gets its own, zeroed and backed, with no name left behind.
 * Fails on all ranks or on none. */
int bench_node_memory_open(const struct bench_job *job, size_t bytes, void **memory,
                           struct hvd_error *err);
void bench_node_memory_close(void *memory, size_t bytes); /* NULL is fine */

#endif
