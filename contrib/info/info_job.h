/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, cpus and GPUs of the Slurm job around hvd-info, and the variables that gave
 * them. */
#ifndef HVD_INFO_JOB_H
#define HVD_INFO_JOB_H

#include "gpu_binding/binding.h"

/* Looks a variable up; getenv in the program, a table in tests. */
typedef const char *(*hvd_info_lookup)(const char *name);

/* The step as found, and the name of where each part came from; NULL where nothing was
 * found, and the part is left zero. Texts are borrowed from the environment. */
struct hvd_info_job {
    bool is_job; /* inside a Slurm job at all */
    bool is_step; /* this process is a task that srun started */
    bool is_repeated; /* another task of the step on this node shows the same */
    bool is_elsewhere; /* a shell of salloc, not on a node of the job */
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

/* The value for place `node` in Slurm's counts per node, "2(x3),1"; 0 for no such
 * text. */
int hvd_info_count_of(const char *counts, int node);

#endif
