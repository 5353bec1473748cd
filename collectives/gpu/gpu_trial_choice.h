/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the algorithm of an allreduce between nodes from times that the ranks of a
 * process set have measured, for each size class of batches. Pure. */
#ifndef HVD_GPU_TRIAL_CHOICE_H
#define HVD_GPU_TRIAL_CHOICE_H

#include <stdint.h>

#include "collectives/gpu/gpu_config.h"

enum {
    /* The window of chunks is not full, full, and full several times. */
    HVD_GPU_SIZE_CLASSES = 3,
};

/* Measurements of a rank for each algorithm, in the form in which ranks exchange them. */
struct hvd_gpu_trial {
    int64_t count; /* batches started */
    int64_t ns[HVD_GPU_ALLREDUCE_ALGORITHMS];
    int64_t bytes[HVD_GPU_ALLREDUCE_ALGORITHMS]; /* the same on all ranks */
};

/* Returns the size class of a batch; -1 if it is smaller than a chunk of all local ranks,
 * so that no chunks overlap. */
int hvd_gpu_size_class(int64_t bytes, int64_t chunk_bytes);

/* Returns the first size of a class in bytes. */
int64_t hvd_gpu_size_class_begin(int size_class, int64_t chunk_bytes);

/* Returns the speed of an algorithm on the slowest rank, in bytes per nanosecond. */
double hvd_gpu_trial_speed(const struct hvd_gpu_trial *told, int size,
                           enum hvd_gpu_allreduce algorithm);

/* Returns the algorithm to use. A candidate replaces those before it only if it is faster
 * by the margin, because trials of a few batches vary by some percent. */
enum hvd_gpu_allreduce hvd_gpu_trial_best(const struct hvd_gpu_trial *told, int size,
                                          const enum hvd_gpu_allreduce *candidates,
                                          int count);

#endif
