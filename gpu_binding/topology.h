/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a node for the plan: its cpus, memory nodes, GPUs and NICs, and how near they
 * are to each other. Plain arrays; only topology*.c knows hwloc. */
#ifndef HVD_TOPOLOGY_H
#define HVD_TOPOLOGY_H

#include <stdbool.h>

#include "gpu_binding/cpuset.h"

struct hvd_error;

/* Every index below is into an array of struct hvd_topology; HVD_NONE means that there is
 * none. */
#define HVD_NONE (-1)

/* A hardware thread. */
struct hvd_cpu {
    int number; /* the kernel's number */
    int core; /* logical number, which is also Slurm's abstract core number */
    int numa; /* HVD_NONE on cores without memory */
    int socket;
};

/* A memory node that has cpus; GPU memory that looks like a memory node is left out. */
struct hvd_numa {
    int number; /* the kernel's number */
    int socket; /* HVD_NONE if it serves several sockets */
    bool is_allowed; /* this process may allocate there */
};

/* An NVIDIA GPU. socket and numa are HVD_NONE where the node does not tell. */
struct hvd_gpu {
    char bus[24]; /* 0000:18:00.0 */
    char model[24]; /* V100, or 10de:1db5 if the name is unknown */
    char uuid[48]; /* GPU-..., empty when unknown */
    int device_minor; /* N of /dev/nvidiaN, HVD_NONE when unknown */
    int socket;
    int numa;
};

/* One port of a NIC that does RDMA. */
struct hvd_nic {
    char name[32]; /* mlx5_0 */
    char bus[24];
    int port;
    int socket;
    int numa;
    bool is_active;
    bool is_infiniband;
};

/* How near a NIC is to a GPU, nearest first: the smallest part of the machine that both
 * are attached to. The names are those of nvidia-smi topo -m. */
enum hvd_closeness {
    HVD_CLOSE_PIX, /* one PCIe switch */
    HVD_CLOSE_PXB, /* several PCIe switches */
    HVD_CLOSE_PHB, /* the host bridge */
    HVD_CLOSE_NUMA,
    HVD_CLOSE_SOCKET,
    HVD_CLOSE_SYS, /* different sockets */
};

struct hvd_topology {
    /* the cpus that this process could bind to when the node was read */
    struct hvd_cpuset allowed;
    int cpu_count;
    struct hvd_cpu *cpus; /* ascending by core, the threads of a core together */
    int core_count;
    int numa_count;
    struct hvd_numa *numas;
    int socket_count;
    int *socket_distance; /* [from * socket_count + to], smaller is nearer */
    int gpu_count;
    struct hvd_gpu *gpus; /* ascending by bus id, as CUDA counts in PCI_BUS_ID order */
    int foreign_gpu_count; /* GPUs that hvd does not support, not among gpus */
    const char *foreign_gpu_vendor; /* vendor of the first of them; NULL: there is none */
    int nic_count;
    struct hvd_nic *nics; /* ascending by bus id and port */
    enum hvd_closeness *closeness; /* [gpu * nic_count + nic] */
};

/* The source to read from; a zeroed struct means this node. hvd reads no environment
 * variable to choose the source, but hwloc obeys HWLOC_*. */
struct hvd_topology_source {
    const char *xml_file; /* an hwloc XML file instead of this node */
    /* directory of UUIDs and minors; NULL: /proc/driver/nvidia/gpus for this node */
    const char *nvidia_dir;
};

/* Reads a node, which takes 20 ms for this node. *topology must not hold an earlier
 * topology; free the new one with hvd_topology_finish. Fails if the file cannot be read
 * or parsed. */
int hvd_topology_load(struct hvd_topology *topology,
                      const struct hvd_topology_source *source, struct hvd_error *err);

/* Frees the arrays and zeroes the struct; NULL and a zeroed struct are fine. */
void hvd_topology_finish(struct hvd_topology *topology);

/* Finds all cpus of the cores in a list such as "0-3,8" (Slurm's S_STEP_ALLOC_CORES).
 * Cores that this node lacks are ignored, so the result may be empty. */
int hvd_topology_cores(const struct hvd_topology *topology, const char *cores,
                       struct hvd_cpuset *cpus, struct hvd_error *err);

/* Count the cpus of a set, or the cores with such a cpu, on a socket (HVD_NONE: on all
 * sockets). */
int hvd_topology_count_cpus(const struct hvd_topology *topology,
                            const struct hvd_cpuset *cpus, int socket);
int hvd_topology_count_cores(const struct hvd_topology *topology,
                             const struct hvd_cpuset *cpus, int socket);

#endif
