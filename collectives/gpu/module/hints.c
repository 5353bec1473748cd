/* SPDX-License-Identifier: Apache-2.0 */
/* The usual cause of an error of CUDA or NCCL. */
#include "collectives/gpu/module/hints.h"

#include <stddef.h>
#include <string.h>

#include "collectives/gpu/module/nccl.h"

#define MEMORY_IS_FULL                                                                   \
    "the GPU's memory is full, a smaller batch or a lower HOROVOD_FUSION_THRESHOLD "     \
    "leaves more"

/* The numbers are CUDA's. */
static const struct {
    int error;
    const char *hint;
} cuda_hints[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, MEMORY_IS_FULL},
    {3, "CUDA does not survive a fork: start such processes by spawn"},
    {46, "another process has this GPU for itself (nvidia-smi -q -d COMPUTE)"},
    {100, "no GPU is visible: look at CUDA_VISIBLE_DEVICES, and whether the job has any"},
    {101, "there is no such GPU among those of CUDA_VISIBLE_DEVICES"},
    {214, "the GPU's memory is damaged (nvidia-smi -q -d ECC)"},
    {802, "nvidia-fabricmanager is not running on this node"},
    {803, "the driver was updated while it was loaded: this node needs a reboot"},
};

static bool may_come_from_a_kernel(int error)
{
    return error == 700 || error == 702 || (error >= 710 && error <= 719) || error == 999;
}

const char *hvd_cuda_hint(int error)
{
    for (size_t i = 0; i < sizeof(cuda_hints) / sizeof(cuda_hints[0]); i++) {
        if (cuda_hints[i].error == error) {
            return cuda_hints[i].hint;
        }
    }
    return may_come_from_a_kernel(error)
               ? "it may come from an earlier kernel of the training: compute-sanitizer "
                 "shows which"
               : "";
}

/* Words in NCCL's messages; the first that is found counts. */
static const struct {
    const char *word;
    const char *hint;
} nccl_hints[] = {
    {"Duplicate GPU", "two ranks use one GPU: each needs one of its own, or its own "
                      "NCCL_HOSTID"},
    {"out of memory", MEMORY_IS_FULL},
    {"shared memory",
     "/dev/shm is full or too small (docker run --shm-size, df /dev/shm)"},
    {"/dev/shm", "/dev/shm is full or too small (docker run --shm-size, df /dev/shm)"},
    {"driver version is insufficient", "this NCCL needs a newer driver of NVIDIA's"},
    {"ibv_",
     "it is the InfiniBand card: look at ulimit -l; NCCL_IB_DISABLE=1 goes without"},
    {"interface", "NCCL_SOCKET_IFNAME names the interface that reaches the other nodes"},
};

static const char *hint_of(int result)
{
    switch (result) {
    case NCCL_UNHANDLED_CUDA_ERROR:
        return "often the GPU's memory is full; NCCL_DEBUG=WARN tells more";
    case NCCL_SYSTEM_ERROR:
        return "often /dev/shm is too small, or NCCL_SOCKET_IFNAME names no interface "
               "that reaches the other nodes; NCCL_DEBUG=WARN tells more";
    case NCCL_INVALID_USAGE:
        return "often two ranks use one GPU; NCCL_DEBUG=WARN tells more";
    case NCCL_REMOTE_ERROR:
        return "another rank died or gave up";
    default:
        return "NCCL_DEBUG=WARN tells more";
    }
}

const char *hvd_nccl_hint(int result, const char *last_error)
{
    for (size_t i = 0; i < sizeof(nccl_hints) / sizeof(nccl_hints[0]); i++) {
        if (strstr(last_error, nccl_hints[i].word) != NULL) {
            return nccl_hints[i].hint;
        }
    }
    return hint_of(result);
}
