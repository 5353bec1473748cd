/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the driver about links between GPUs, and about RDMA to GPU memory. If a query
 * fails, the answer is "unknown" or "no": links are only shown to users, and UCX then
 * goes through host memory. */
#include <string.h>

#include "collectives/gpu/module/device.h"

static int32_t has_attribute(const struct hvd_gpu_device *device, int attribute)
{
    int value = 0;
    int error = device->cuda->device_attribute(&value, attribute, device->number);

    return error == CUDA_SUCCESS && value != 0;
}

int32_t hvd_links_has_dma_buf(const struct hvd_gpu_device *device)
{
    return has_attribute(device, CU_DEVICE_DMA_BUF_SUPPORTED);
}

int32_t hvd_links_is_on_switch(const struct hvd_gpu_device *device)
{
    return has_attribute(device, CU_DEVICE_MULTICAST_SUPPORTED);
}

int32_t hvd_links_orders_writes(const struct hvd_gpu_device *device)
{
    int value = 0;
    int error = device->cuda->device_attribute(
        &value, CU_DEVICE_GPU_DIRECT_RDMA_WRITES_ORDERING, device->number);

    return error == CUDA_SUCCESS && value >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
}

/* Returns the driver's handle of the GPU; -1 if this process does not see it. */
static int find_device(const struct hvd_cuda *cuda, const unsigned char *uuid)
{
    unsigned char found[HVD_GPU_UUID_BYTES];
    int count = 0, device;

    if (cuda->device_count(&count) != CUDA_SUCCESS) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (cuda->device_get(&device, i) == CUDA_SUCCESS &&
            cuda->device_uuid(found, device) == CUDA_SUCCESS &&
            memcmp(found, uuid, sizeof(found)) == 0) {
            return device;
        }
    }
    return -1;
}

enum hvd_gpu_link hvd_links_between(const unsigned char one[HVD_GPU_UUID_BYTES],
                                    const unsigned char other[HVD_GPU_UUID_BYTES])
{
    struct hvd_gpu_library found;
    const struct hvd_cuda *cuda = hvd_cuda_find(&found);
    int from = cuda != NULL ? find_device(cuda, one) : -1;
    int to = cuda != NULL ? find_device(cuda, other) : -1;
    int can = 0, has_atomics = 0;

    if (from < 0 || to < 0 || from == to ||
        cuda->can_access(&can, from, to) != CUDA_SUCCESS) {
        return HVD_GPU_LINK_UNKNOWN;
    }
    if (can == 0) {
        return HVD_GPU_LINK_NONE;
    }
    return cuda->p2p_attribute(&has_atomics, CU_P2P_NATIVE_ATOMIC_SUPPORTED, from, to) ==
                       CUDA_SUCCESS &&
                   has_atomics != 0
               ? HVD_GPU_LINK_NVLINK
               : HVD_GPU_LINK_PCIE;
}
