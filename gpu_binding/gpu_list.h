/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the GPUs of the local ranks in a topology, by the numbers and UUIDs that Slurm
 * and CUDA use. */
#ifndef HVD_GPU_LIST_H
#define HVD_GPU_LIST_H

#include "gpu_binding/topology.h"

#define HVD_GPU_LIST_SIZE 64

/* A GPU of the list. number is the one that users know; gpu is its index in the topology,
 * HVD_NONE for a GPU that is not found on PCI (a MIG slice, or a GPU that only Slurm
 * knows). */
struct hvd_gpu_item {
    int number;
    int gpu;
};

/* GPUs in CUDA's order: local rank i takes item i mod count. */
struct hvd_gpu_list {
    int count;
    struct hvd_gpu_item items[HVD_GPU_LIST_SIZE];
};

/* Lists every GPU of the node. */
void hvd_gpu_list_all(const struct hvd_topology *topology, struct hvd_gpu_list *list);

/* Lists the node's GPUs if there are exactly count of them, else count GPUs about which
 * nothing is known. */
void hvd_gpu_list_counted(const struct hvd_topology *topology, int count,
                          struct hvd_gpu_list *list);

/* Parses a set of GPU numbers or UUIDs, as in SLURM_STEP_GPUS ("0-1,3"). The list is
 * sorted by bus id, so that the order in the text does not matter. */
int hvd_gpu_list_parse(const struct hvd_topology *topology, const char *text,
                       struct hvd_gpu_list *list, struct hvd_error *err);

/* Parses CUDA_VISIBLE_DEVICES. The list keeps its order and, as in CUDA, ends at the
 * first entry that names no GPU. step has the GPUs of the step, or is NULL. If every
 * number in text is the number of one of these GPUs, it names that GPU; else the numbers
 * are indices into step. */
int hvd_gpu_list_visible(const struct hvd_topology *topology, const char *text,
                         const struct hvd_gpu_list *step, struct hvd_gpu_list *list,
                         struct hvd_error *err);

#endif
