/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the NVIDIA driver for the model, the UUID and the /dev/nvidiaN of each GPU. */
#ifndef HVD_NVIDIA_PROC_H
#define HVD_NVIDIA_PROC_H

#include "gpu_binding/topology.h"

/* Fills model, uuid and device_minor of the GPUs that have a folder in dir, which is laid
 * out like /proc/driver/nvidia/gpus. GPUs without a folder are left alone. */
void hvd_nvidia_proc_read(const char *dir, struct hvd_topology *topology);

#endif
