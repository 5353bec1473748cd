/* SPDX-License-Identifier: Apache-2.0 */
/* What the NVIDIA driver knows of a GPU: its model, its UUID and its /dev/nvidiaN. */
#ifndef HVD_NVIDIA_PROC_H
#define HVD_NVIDIA_PROC_H

#include "gpu_binding/topology.h"

/* Fills model, uuid and device_minor of the GPUs that have a folder in dir, which is laid
 * out as /proc/driver/nvidia/gpus. Without such a folder they stay as they are. */
void hvd_nvidia_proc_read(const char *dir, struct hvd_topology *topology);

#endif
