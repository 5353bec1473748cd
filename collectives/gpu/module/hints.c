/* SPDX-License-Identifier: Apache-2.0 */
/* Maps errors of CUDA and NCCL to their usual causes. */
#include "collectives/gpu/module/hints.h"

#include <stddef.h>
#include <string.h>

#include "collectives/gpu/module/nccl.h"

#define MEMORY_IS_FULL                                                                   \
    "the GPU's memory is full: use a smaller batch or a lower HOROVOD_FUSION_THRESHOLD"

#define SHARED_GPU                                                                       \
    "two ranks use one GPU: give each rank its own GPU, or set "                         \
    "NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks"

/* Error numbers of CUDA (CUresult). */
static const struct {
    int error;
    const char *hint;
} cuda_hints[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, MEMORY_IS_FULL},
    {3, "CUDA does not work after fork(): start the processes with the spawn method"},
    {46, "another process uses this GPU exclusively (nvidia-smi -q -d COMPUTE)"},
    {100, "no GPU is visible: check CUDA_VISIBLE_DEVICES, and whether the job has GPUs"},
    {101, "CUDA_VISIBLE_DEVICES has no such GPU"},
    {214, "the GPU's memory is damaged (nvidia-smi -q -d ECC)"},
    {217, "these GPUs do not reach each other's memory (nvidia-smi topo -p2p rw)"},
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
    return may_come_from_a_kernel(error) ? "an earlier kernel of the training may have "
                                           "caused it: compute-sanitizer "
                                           "shows which one"
                                         : "";
}

/* Substrings of NCCL's messages; the first one that matches gives the hint. */
static const struct {
    const char *word;
    const char *hint;
} nccl_hints[] = {
    {"Multiple Ranks are using the same GPU", SHARED_GPU}, /* NCCL 2.30.7 */
    {"Multiple ranks detected using the same GPU", SHARED_GPU}, /* NCCL 2.30.3 */
    {"Duplicate GPU", "two ranks use one GPU: give each rank its own GPU, or its own "
                      "NCCL_HOSTID"},
    {"out of memory", MEMORY_IS_FULL},
    {"shared memory",
     "/dev/shm is full or too small (docker run --shm-size, df /dev/shm)"},
    {"/dev/shm", "/dev/shm is full or too small (docker run --shm-size, df /dev/shm)"},
    {"driver version is insufficient", "this NCCL needs a newer NVIDIA driver"},
    {"ibv_",
     "the InfiniBand card failed: check ulimit -l; NCCL_IB_DISABLE=1 does without it"},
    {"interface", "set NCCL_SOCKET_IFNAME to the interface that reaches the other nodes"},
};

static const char *hint_of(int result)
{
    switch (result) {
    case NCCL_UNHANDLED_CUDA_ERROR:
        return "often the GPU's memory is full; NCCL_DEBUG=WARN shows details";
    case NCCL_SYSTEM_ERROR:
        return "often /dev/shm is too small, or NCCL_SOCKET_IFNAME names no interface "
               "that reaches the other nodes; NCCL_DEBUG=WARN shows details";
    case NCCL_INVALID_USAGE:
        return "often two ranks use one GPU; NCCL_DEBUG=WARN shows details";
    case NCCL_REMOTE_ERROR:
        return "another rank died or gave up";
    default:
        return "NCCL_DEBUG=WARN shows details";
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
