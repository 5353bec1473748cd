/* SPDX-License-Identifier: Apache-2.0 */
/* Measures links between nodes, ranks of a node and GPUs by messages of hvd and one
 * allreduce. */
#ifndef HVD_INFO_LINKS_H
#define HVD_INFO_LINKS_H

#include <stdbool.h>

#include "contrib/info/check/fold.h"
#include "contrib/info/check/gpu.h"
#include "contrib/info/check/library.h"

/* Collective over the job. Writes this rank's numbers of values.h; budget_s is the time
 * for each direction of a pair. Fails, and names both ranks, if one does not answer. */
int hvd_info_links(const struct hvd_info_library *library,
                   const struct hvd_info_nodes *nodes, double budget_s, double *values,
                   struct hvd_error *err);

/* The same for GPUs: between two of a node, unless they are one GPU, and an allreduce
 * among all. Collective over the job; measures nothing if a rank has no GPU that hvd can
 * use. */
int hvd_info_links_gpus(const struct hvd_info_library *library,
                        const struct hvd_info_nodes *nodes,
                        const struct hvd_info_gpu *gpu, bool is_usable, double budget_s,
                        double *values, struct hvd_error *err);

/* Returns the number of this rank among those of its node. */
int hvd_info_links_local_number(const struct hvd_info_nodes *nodes, int rank);

/* Returns the first rank of a node. */
int hvd_info_links_first(const struct hvd_info_nodes *nodes, int node);

/* Waits for a request, 60 seconds at most, and frees it. */
int hvd_info_links_finish(const struct hvd_info_library *library,
                          struct hvd_request *request, struct hvd_error *err);

#endif
