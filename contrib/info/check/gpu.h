/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the GPU of a rank, through the CUDA driver, which is loaded at run time. */
#ifndef HVD_INFO_GPU_H
#define HVD_INFO_GPU_H

#include <stddef.h>
#include <stdint.h>

enum {
    HVD_INFO_GPU_MODEL_BYTES = 64,
    HVD_INFO_GPU_UUID_BYTES = 16,
};

/* The functions of the driver that the check calls; types as in cuda.h. */
struct hvd_info_cuda {
    int (*init)(unsigned int flags);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int number);
    int (*device_name)(char *name, int bytes, int device);
    int (*device_uuid)(char *uuid, int device);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*memory_info)(size_t *unused, size_t *total);
    int (*alloc)(uint64_t *memory, size_t bytes);
    int (*free)(uint64_t memory);
    int (*alloc_pinned)(void **memory, size_t bytes, unsigned int flags);
    int (*free_pinned)(void *memory);
    int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
    int (*wait)(void);
};

/* A GPU that is in use between open and close. */
struct hvd_info_gpu {
    struct hvd_info_cuda cuda;
    int device; /* -1: none */
    char uuid[HVD_INFO_GPU_UUID_BYTES];
};

/* Writes the model of the first GPU that this process sees, such as "NVIDIA
 * A100-SXM4-40GB"; "" if there is none. Makes no context. */
void hvd_info_gpu_model(char model[HVD_INFO_GPU_MODEL_BYTES]);

/* Makes the context of the GPU with this number, modulo the number of GPUs that this
 * process sees, current in the calling thread. device is -1 if that is impossible. */
void hvd_info_gpu_open(struct hvd_info_gpu *gpu, int number);
void hvd_info_gpu_close(struct hvd_info_gpu *gpu);

/* Writes how much memory of the GPU is in use, and the rate of copies from pinned memory
 * of the host, of which it makes as many as fit into budget_s. */
void hvd_info_gpu_measure(const struct hvd_info_gpu *gpu, double budget_s,
                          double *values);

/* Returns memory of the GPU that is set to nothing in particular, or NULL. */
void *hvd_info_gpu_alloc(const struct hvd_info_gpu *gpu, size_t bytes);
void hvd_info_gpu_free(const struct hvd_info_gpu *gpu, void *memory);

#endif
