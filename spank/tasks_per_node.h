/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks a node of the job should get when the user did not say. Pure. */
#ifndef HVD_SPANK_TASKS_PER_NODE_H
#define HVD_SPANK_TASKS_PER_NODE_H

#include "gpu_binding/base/error.h"

/* What srun's environment says about the job; 0: it says nothing. */
struct hvd_spank_allocation {
    int nodes;
    int gpus_per_node;
    int gpus; /* of all nodes */
    int cpus_per_node; /* of the node that has the fewest */
    int cpus_per_task;
};

/* One task per GPU. Writes 0 when the job has no GPUs, or nobody can know how many a node
 * has. HVD_ERR_ARG, with what to type instead, when the nodes differ in GPUs or have too few
 * cpus for the tasks. */
int hvd_spank_tasks_per_node(const struct hvd_spank_allocation *allocation, int *tasks,
                             struct hvd_error *err);

#endif
