/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ranks, cpus and GPUs of the Slurm job around hvd-info, and remembers which
 * variables named them. */
#ifndef HVD_INFO_JOB_H
#define HVD_INFO_JOB_H

#include "gpu_binding/binding.h"

/* Looks a variable up: getenv in the program, a table in tests. */
typedef const char *(*hvd_info_lookup)(const char *name);

/* The step as found. Each source is the name of the variable that named the part; it is
 * NULL, and the part is zero, if no variable did. Texts are borrowed from the
 * environment. */
struct hvd_info_job {
    bool is_job; /* this process is inside a Slurm job */
    bool is_step; /* this process is a task that srun started */
    bool is_repeated; /* another task of the step on this node prints the same */
    bool is_elsewhere; /* in a shell of salloc, which is not on a node of the job */
    int rank_count;
    const char *rank_source;
    int cpus_per_task;
    const char *cpus_per_task_source;
    const char *gpu_numbers;
    int gpu_count;
    const char *gpu_source;
    const char *visible_devices;
};

void hvd_info_job_read(hvd_info_lookup lookup, struct hvd_info_job *job);

/* Returns whether Slurm or the user has given GPUs to this process. */
bool hvd_info_job_has_gpus(const struct hvd_info_job *job);

/* Returns the value of node number `node` in Slurm's counts per node, such as "2(x3),1";
 * 0 if the text is malformed or has no such node. */
int hvd_info_count_of(const char *counts, int node);

#endif
