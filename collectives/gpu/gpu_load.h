/* SPDX-License-Identifier: Apache-2.0 */
/* Loads hvd_gpu.so. */
#ifndef HVD_GPU_LOAD_H
#define HVD_GPU_LOAD_H

#include "collectives/gpu/gpu_module.h"

/* Loads the module once, from HVD_GPU_MODULE or from the directory of libhvd; it is never
 * unloaded. If that fails, returns NULL and puts the reason into err. Any thread. */
const struct hvd_gpu_module *hvd_gpu_load(struct hvd_error *err);

/* Returns the path from which the module was loaded, "" if it is not loaded. */
const char *hvd_gpu_loaded_from(void);

#endif
