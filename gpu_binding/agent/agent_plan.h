/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a node as text, for the ranks that an agent starts there. Such as
 * "12.0 0-15;0-7 0 mlx5_0:1;8-15 1 -": Slurm's job and step, the cpus of the agent, and
 * for each local rank its cpus, memory node and network cards. "-": none. */
#ifndef HVD_AGENT_PLAN_H
#define HVD_AGENT_PLAN_H

#include "gpu_binding/base/error.h"
#include "gpu_binding/cpuset.h"

struct hvd_plan;

/* The part of the plan that one rank needs. */
struct hvd_agent_plan {
    char step[32]; /* JOB.STEP in which the plan holds */
    struct hvd_cpuset agent; /* the cpus that the agent may use */
    int row_count; /* ranks that the plan has been made for */
    /* The row of this rank; zeroed if the plan has none for it. */
    struct hvd_cpuset cpus; /* empty: the rank keeps those of the agent */
    int memory_node; /* HVD_NONE: the rank keeps its memory policy */
    char nic[256]; /* for UCX_NET_DEVICES; empty: none */
};

/* Returns the text, which the caller frees; NULL if there is no memory. */
char *hvd_agent_plan_write(const struct hvd_plan *plan, const char *step,
                           const struct hvd_cpuset *agent);

/* Reads the whole text, and the row of local_rank. A text that hvd_agent_plan_write
 * cannot have written is HVD_ERR_ARG; *out is then unchanged. */
int hvd_agent_plan_read(const char *text, int local_rank, struct hvd_agent_plan *out,
                        struct hvd_error *err);

#endif
