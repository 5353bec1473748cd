/* SPDX-License-Identifier: Apache-2.0 */
/* The words are from NCCL's source, versions 2.14 to 2.30. */
#include "contrib/info/nccl/advice.h"

#include <stddef.h>
#include <string.h>

#define MEMORY_IS_FULL                                                                   \
    "the GPU's memory is full: use a smaller batch or a lower "                          \
    "HOROVOD_FUSION_THRESHOLD; "                                                         \
    "nvidia-smi shows whether another process uses the GPU"
#define SHM_IS_FULL                                                                      \
    "/dev/shm is full or too small: df /dev/shm; in a container --shm-size; remove "     \
    "files "                                                                             \
    "/dev/shm/nccl-* that no running job uses"
#define OTHER_VERSION                                                                    \
    "nodes or programs load different versions of NCCL: hvd-info --check in the job "    \
    "shows which library each node loads; HVD_NCCL_LIBRARY names one for hvd"
#define NO_INTERFACE                                                                     \
    "set NCCL_SOCKET_IFNAME to the interface that reaches the other nodes, such as "     \
    "=eth0"
#define NOT_REACHED                                                                      \
    "the other process does not listen there: it has ended, so look at its warnings; "   \
    "or "                                                                                \
    "a firewall is between the nodes; or NCCL_SOCKET_IFNAME names the wrong interface"
#define RANK_ENDED                                                                       \
    "another rank has ended or given up (ncclRemoteError): this is a consequence; the "  \
    "cause is an earlier warning, or in the output of that rank"
#define LOCKED_MEMORY                                                                    \
    "the InfiniBand card may not lock enough memory: ulimit -l must be unlimited; in "   \
    "Slurm also LimitMEMLOCK=infinity of slurmd.service"
#define LINK_FAILED                                                                      \
    "the network lost packets, or the other rank has ended: check the cards by "         \
    "ibstat, and the counters of errors; NCCL_IB_TIMEOUT=22 waits longer"

/* A warning that has the first text and, unless it is NULL, the second one. The first
 * match counts. */
static const struct {
    const char *word;
    const char *other;
    const char *advice;
} known[] = {
    {"Cuda failure", "out of memory", MEMORY_IS_FULL},
    {"CUDA failure", "out of memory", MEMORY_IS_FULL},
    {"Failed to CUDA", NULL, MEMORY_IS_FULL},
    {"driver version is insufficient", NULL, "this NCCL needs a newer NVIDIA driver"},
    {"NVLink SHARP", NULL,
     "nvidia-fabricmanager or an NVSwitch does not work: systemctl status "
     "nvidia-fabricmanager; NCCL_NVLS_ENABLE=0 does without NVLink SHARP"},
    {"Cuda failure", NULL,
     "a call of CUDA failed (unhandled CUDA error); often an earlier kernel of the "
     "training is the cause, which compute-sanitizer names; dmesg | grep Xid shows "
     "faults "
     "of the GPU"},
    {"attaching to shared memory", NULL,
     "ranks of one node do not see the same /dev/shm: start their containers with the "
     "node's own (--ipc=host), or set NCCL_SHM_DISABLE=1"},
    {"creating shared memory", NULL, SHM_IS_FULL},
    {"create shared memory", NULL, SHM_IS_FULL},
    {"/dev/shm", "failed to extend", SHM_IS_FULL},
    {"/dev/shm", "No space left", SHM_IS_FULL},
    {"Mismatched NCCL version", NULL, OTHER_VERSION},
    {"NCCL version mismatch", NULL, OTHER_VERSION},
    {"compiled with NCCL version", NULL, OTHER_VERSION},
    {"too old version of NCCL", NULL, OTHER_VERSION},
    {"Duplicate GPU", NULL,
     "two ranks use one GPU: give each rank its own GPU (srun --gpus-per-node), or its "
     "own NCCL_HOSTID"},
    {"using the same GPU", NULL,
     "two ranks use one GPU: give each rank its own GPU (srun --gpus-per-node), or set "
     "NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks"},
    {"ibv_reg_mr", NULL, LOCKED_MEMORY},
    {"ibv_", "Cannot allocate memory", LOCKED_MEMORY},
    {"ibv_", NULL,
     "the InfiniBand card refused a call: ibstat, ulimit -l; NCCL_IB_DISABLE=1 does "
     "without the card"},
    {"NET/IB", "Got completion", LINK_FAILED},
    {"async fatal event", NULL,
     "the InfiniBand card or its link failed: ibstat and dmesg on this node"},
    {"NET/IB", "incompatible",
     "the nodes have cards of different kinds, InfiniBand and Ethernet: choose one kind "
     "by NCCL_IB_HCA"},
    {"NET/IB", "Unable to open device",
     "this process may not use the InfiniBand card: check ibstat, and whether the "
     "container has /dev/infiniband"},
    {"NET/IB", "No IP interface", NO_INTERFACE},
    {"NET/IB", "No device",
     "NCCL finds no InfiniBand card: check ibstat, NCCL_IB_HCA, and whether the "
     "container "
     "has /dev/infiniband"},
    {"initialize any NET plugin", NULL,
     "NCCL_NET or NCCL_NET_PLUGIN names a network that does not work on this node, such "
     "as IB without an InfiniBand card: check ibstat, or leave the variable out"},
    {"no socket interface found", NULL, NO_INTERFACE},
    {"no interface found", NULL, NO_INTERFACE},
    {"No interface found", NULL, NO_INTERFACE},
    {"No usable listening interface", NULL, NO_INTERFACE},
    {"no device found", "IFNAME", NO_INTERFACE},
    {"Too many open files", NULL, "a higher limit of open files: ulimit -n"},
    {"Connection closed by remote peer", NULL, RANK_ENDED},
    {"Connection reset by peer", NULL, RANK_ENDED},
    {"Broken pipe", NULL, RANK_ENDED},
    {"remote process exited", NULL, RANK_ENDED},
    {"Connection refused", NULL, NOT_REACHED},
    {"Connection timed out", NULL, NOT_REACHED},
    {"No route to host", NULL, NOT_REACHED},
    {"exceeded error retry count", NULL, NOT_REACHED},
    {"exceeded retries", NULL, NOT_REACHED},
    {"exceeded timeouts", NULL, NOT_REACHED},
    {"libnvidia-ml", NULL,
     "the NVIDIA driver's library is missing: in a container, start it with the GPUs "
     "(docker run --gpus all, enroot's hook for NVIDIA)"},
    {"P2P is disabled between NVLINK", NULL,
     "GPUs that NVLink joins cannot reach each other: nvidia-smi topo -p2p r; look for "
     "NCCL_P2P_DISABLE, and ask the administrator"},
};

const char *hvd_info_nccl_advice(const char *text)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strstr(text, known[i].word) != NULL &&
            (known[i].other == NULL || strstr(text, known[i].other) != NULL)) {
            return known[i].advice;
        }
    }
    return NULL;
}
