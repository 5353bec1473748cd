/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the number of tasks on a node of the job if the user does not. Pure. */
#ifndef HVD_SPANK_TASKS_PER_NODE_H
#define HVD_SPANK_TASKS_PER_NODE_H

#include "gpu_binding/base/error.h"

/* The job's allocation, as far as srun knows it; 0: unknown. */
struct hvd_spank_allocation {
    int nodes;
    int gpus_per_node;
    int gpus; /* on all nodes together */
    int cpus_per_node; /* CPUs of the node that has the fewest */
    int cpus_per_task;
};

/* Chooses one task per GPU. Writes 0 if the job has no GPUs, or if their number on a node
 * is unknown. Returns HVD_ERR_ARG, with the options to use, if the nodes differ in GPUs
 * or have too few CPUs for the tasks. */
int hvd_spank_tasks_per_node(const struct hvd_spank_allocation *allocation, int *tasks,
                             struct hvd_error *err);

#endif
