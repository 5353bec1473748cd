/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the plan: one row per local rank, from a node, the cpus and GPUs of a step,
 * and a number of ranks. Pure: no system calls, no environment, no static state. Every
 * rank computes the same whole plan and takes its own row. */
#ifndef HVD_PLAN_H
#define HVD_PLAN_H

#include <stdbool.h>

#include "gpu_binding/cpuset.h"
#include "gpu_binding/gpu_list.h"
#include "gpu_binding/topology.h"

#define HVD_PLAN_RANKS_MAX 4096

enum hvd_bind_mode {
    HVD_BIND_AUTO, /* cores when cpus_per_rank is known, else socket */
    HVD_BIND_NONE, /* cpus and memory stay as they are */
    /* Each rank gets its own share of the allowed cores of its GPU's socket, cores near
     * the GPU's memory node first. If there are more ranks than cores, they share all
     * cores. */
    HVD_BIND_SOCKET,
    /* As HVD_BIND_SOCKET, but a rank gets at most cpus_per_rank cores. If there are more
     * ranks than cores, each rank gets hardware threads. */
    HVD_BIND_CORES,
};

/* Zeroed, it has the defaults. */
struct hvd_plan_options {
    enum hvd_bind_mode mode;
    int cpus_per_rank; /* the most cores of a row with HVD_BIND_CORES; 0: no limit */
    int threads_per_core; /* the most hardware threads to use of a core; 0: all */
    bool nic_off; /* choose no NIC */
};

struct hvd_plan_row {
    int local_rank;
    /* index in the list, which is CUDA's device number; HVD_NONE: no GPU */
    int gpu_index;
    struct hvd_gpu_item gpu; /* both members are HVD_NONE without a GPU */
    int socket; /* index of the socket that its cpus are on; HVD_NONE in mode none */
    int gpu_socket; /* index, HVD_NONE when unknown */
    int gpu_numa; /* kernel's number of the GPU's memory node, HVD_NONE when unknown */
    /* kernel's number of the memory node to prefer; HVD_NONE: keep the policy */
    int memory_numa;
    int core_count;
    struct hvd_cpuset cpus; /* never empty */
    bool is_far; /* the GPU's socket has no allowed cpu */
    char nic[256]; /* for UCX_NET_DEVICES: mlx5_0:1,...; empty: leave it alone */
};

struct hvd_plan {
    enum hvd_bind_mode mode; /* never HVD_BIND_AUTO */
    struct hvd_cpuset allowed;
    struct hvd_gpu_list gpus;
    int row_count;
    struct hvd_plan_row *rows; /* by local rank */
    int note_count;
    char **notes; /* sentences for the user: what is unusual, and why */
};

struct hvd_plan_input {
    const struct hvd_topology *topology;
    const struct hvd_cpuset *allowed; /* NULL: topology->allowed */
    const struct hvd_gpu_list *gpus; /* NULL: all of the node */
    int rank_count;
    struct hvd_plan_options options;
};

/* Plans for rank_count ranks (1 .. HVD_PLAN_RANKS_MAX). Cpus in allowed that the topology
 * lacks are ignored; if none is left, returns HVD_ERR_ARG. Writes the plan only on
 * success; free it with hvd_plan_finish. */
int hvd_plan_make(const struct hvd_plan_input *input, struct hvd_plan *plan,
                  struct hvd_error *err);

/* Frees and zeroes a plan; NULL and a zeroed one are fine. */
void hvd_plan_finish(struct hvd_plan *plan);

/* Returns the row of a local rank, borrowed; NULL if the plan has none. */
const struct hvd_plan_row *hvd_plan_row_of(const struct hvd_plan *plan, int local_rank);

/* Returns how many threads a local rank should compute with: its cores, divided among the
 * ranks that have the same cpus; at least 1. */
int hvd_plan_thread_count(const struct hvd_plan *plan, int local_rank);

/* Replaces mode auto according to the cpus that a launcher gave to one task. If they are
 * only a part of `allowed`, the mode becomes cores, with the task's number of cores and
 * threads. Else it becomes cores if cpus_per_rank is set, or socket. Other modes, and
 * limits that the user set, stay. */
void hvd_plan_follow_mask(const struct hvd_topology *topology,
                          const struct hvd_cpuset *allowed, const struct hvd_cpuset *mask,
                          struct hvd_plan_options *options);

/* Convert a mode to and from "auto", "none", "socket" or "cores". Parse also accepts
 * "sockets" and "core", and returns HVD_ERR_ARG for any other word. */
const char *hvd_bind_mode_name(enum hvd_bind_mode mode);
int hvd_bind_mode_parse(const char *word, enum hvd_bind_mode *mode);

#endif
