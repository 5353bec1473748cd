/* SPDX-License-Identifier: Apache-2.0 */
/* Loading hvd_gpu.so. */
#ifndef HVD_GPU_LOAD_H
#define HVD_GPU_LOAD_H

#include "collectives/gpu/gpu_module.h"

/* Loads the module from HVD_GPU_MODULE, or from the directory of libhvd, once; it is
 * never unloaded. Returns NULL and the reason in err if that fails. Any thread. */
const struct hvd_gpu_module *hvd_gpu_load(struct hvd_error *err);

/* The file it was loaded from, or "". */
const char *hvd_gpu_loaded_from(void);

#endif
