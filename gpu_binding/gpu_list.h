/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs the local ranks take: from the numbers and UUIDs that Slurm and CUDA use to
 * the GPUs of a topology. */
#ifndef HVD_GPU_LIST_H
#define HVD_GPU_LIST_H

#include "gpu_binding/topology.h"

#define HVD_GPU_LIST_SIZE 64

/* number is what users call it; gpu is its index in the topology, HVD_NONE for a GPU that
 * is counted but found nowhere on PCI (a MIG slice, a GPU that only Slurm knows). */
struct hvd_gpu_item {
    int number;
    int gpu;
};

/* In the order in which CUDA shows them: local rank i takes item i mod count. */
struct hvd_gpu_list {
    int count;
    struct hvd_gpu_item items[HVD_GPU_LIST_SIZE];
};

/* Every GPU of the node. */
void hvd_gpu_list_all(const struct hvd_topology *topology, struct hvd_gpu_list *list);

/* count GPUs that nothing is known about, or the node's own when it has exactly as
 * many. */
void hvd_gpu_list_counted(const struct hvd_topology *topology, int count,
                          struct hvd_gpu_list *list);

/* A set of GPU numbers or UUIDs, as in SLURM_STEP_GPUS ("0-1,3"). Sorted by bus id, so
 * that the order in the text does not matter. */
int hvd_gpu_list_parse(const struct hvd_topology *topology, const char *text,
                       struct hvd_gpu_list *list, struct hvd_error *err);

/* CUDA_VISIBLE_DEVICES: keeps its order, and ends, like CUDA, at the first entry that
 * names no GPU. step (may be NULL) are the GPUs of the step: the numbers in text are
 * numbers of the node when all are among the step's, else they count within the step. */
int hvd_gpu_list_visible(const struct hvd_topology *topology, const char *text,
                         const struct hvd_gpu_list *step, struct hvd_gpu_list *list,
                         struct hvd_error *err);

#endif
