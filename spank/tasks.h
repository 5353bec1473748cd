/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks a node of the job should get when the user did not say. Pure. */
#ifndef HVD_SPANK_TASKS_H
#define HVD_SPANK_TASKS_H

#include "gpu_binding/base/error.h"

/* What srun's environment says about the job; 0: it says nothing. */
struct hvd_job {
    int nodes;
    int gpus_per_node;
    int gpus; /* of all nodes */
    int cpus_per_node; /* of the node that has the fewest */
    int cpus_per_task;
};

/* One task per GPU. Writes 0 when the job has no GPUs, or nobody can know how many a node
 * has. HVD_ERR_ARG, with what to type instead, when the nodes differ in GPUs or have too few
 * cpus for the tasks. */
int hvd_tasks_per_node(const struct hvd_job *job, int *tasks, struct hvd_error *err);

/* The number at the end of Slurm's text for a count of GPUs: "4", "a100:4", "gres:gpu:4",
 * "gpu:a100:2(S:0-1)"; 1 for "gpu"; 0 when the text names something else, or several. */
int hvd_gpu_count(const char *text);

#endif
