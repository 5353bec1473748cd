/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks a node of the job should get when the user does not choose. Pure. */
#ifndef HVD_SPANK_TASKS_PER_NODE_H
#define HVD_SPANK_TASKS_PER_NODE_H

#include "gpu_binding/base/error.h"

/* What srun knows of the job's allocation; 0: unknown. */
struct hvd_spank_allocation {
    int nodes;
    int gpus_per_node;
    int gpus; /* of all nodes */
    int cpus_per_node; /* of the node that has the fewest */
    int cpus_per_task;
};

/* One task per GPU. Writes 0 when the job has no GPUs, or their number on a node is
 * unknown. HVD_ERR_ARG, with the options to use, when the nodes differ in GPUs or have
 * too few CPUs for the tasks. */
int hvd_spank_tasks_per_node(const struct hvd_spank_allocation *allocation, int *tasks,
                             struct hvd_error *err);

#endif
