/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the algorithm of an allreduce between nodes from measured times. */
#include "collectives/gpu/gpu_trial_choice.h"

/* How many times faster than the candidates before it a candidate must be. */
static const double margin = 1.1;

enum {
    CLASS_FACTOR =
        4, /* each class begins at this many times the size of the one before */
};

int64_t hvd_gpu_size_class_begin(int size_class, int64_t chunk_bytes)
{
    for (int i = 0; i < size_class; i++) {
        chunk_bytes *= CLASS_FACTOR;
    }
    return chunk_bytes;
}

int hvd_gpu_size_class(int64_t bytes, int64_t chunk_bytes)
{
    int size_class = -1;

    while (size_class + 1 < HVD_GPU_SIZE_CLASSES &&
           bytes >= hvd_gpu_size_class_begin(size_class + 1, chunk_bytes)) {
        size_class++;
    }
    return size_class;
}

double hvd_gpu_trial_speed(const struct hvd_gpu_trial *told, int size,
                           enum hvd_gpu_allreduce algorithm)
{
    int64_t most = 1;

    for (int i = 0; i < size; i++) {
        most = told[i].ns[algorithm] > most ? told[i].ns[algorithm] : most;
    }
    return (double)told[0].bytes[algorithm] / (double)most;
}

enum hvd_gpu_allreduce hvd_gpu_trial_best(const struct hvd_gpu_trial *told, int size,
                                          const enum hvd_gpu_allreduce *candidates,
                                          int count)
{
    enum hvd_gpu_allreduce best = candidates[0];

    for (int i = 1; i < count; i++) {
        if (hvd_gpu_trial_speed(told, size, candidates[i]) >
            margin * hvd_gpu_trial_speed(told, size, best)) {
            best = candidates[i];
        }
    }
    return best;
}
