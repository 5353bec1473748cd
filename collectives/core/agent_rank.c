/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a rank that torchrun has started under srun --hvd. */
#include "collectives/core/agent_rank.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/agent/agent_bind.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/number.h"

/* True if this process is in the step of the plan. A step that a rank starts inherits the
 * variables of torchrun. */
static bool is_in_step(const struct hvd_agent_plan *plan)
{
    const char *job = getenv(HVD_ENV_SLURM_JOB);
    const char *step = getenv(HVD_ENV_SLURM_STEP);
    char name[sizeof(plan->step)];

    return job != NULL && step != NULL &&
           snprintf(name, sizeof(name), "%s.%s", job, step) < (int)sizeof(name) &&
           strcmp(name, plan->step) == 0;
}

static void bind_process(const struct hvd_agent_plan *plan, int local_rank)
{
    struct hvd_error err = {0};

    if (!hvd_agent_is_unbound(plan)) {
        hvd_log(HVD_LOG_INFO,
                "local rank %d keeps its cpus and memory policy, because they are not "
                "those that torchrun has",
                local_rank);
    } else if (hvd_agent_bind(plan, &err) != 0) {
        hvd_log(HVD_LOG_WARN, "local rank %d is not bound as planned: %s", local_rank,
                err.text);
    }
}

/* HVD_NIC tells an srun in this process that the user has not chosen the network card. */
static void set_nic(const char *nic)
{
    setenv(HVD_ENV_NIC, nic, 1);
    if (nic[0] != '\0') {
        setenv(HVD_ENV_UCX_NET_DEVICES, nic, 0);
    }
}

static void apply(const struct hvd_agent_plan *plan)
{
    const int local_rank = hvd_number_of_variable(HVD_ENV_TORCH_LOCAL_RANK);
    const int local_size = hvd_number_of_variable(HVD_ENV_TORCH_LOCAL_SIZE);

    if (local_size != plan->row_count || local_rank < 0 || local_rank >= local_size) {
        hvd_log(local_rank <= 0 ? HVD_LOG_WARN : HVD_LOG_INFO,
                "local rank %d of %d is not bound, because srun --hvd has planned for %d "
                "ranks on this node: set PET_NPROC_PER_NODE for srun to the number of "
                "ranks that torchrun starts",
                local_rank, local_size, plan->row_count);
        return;
    }
    bind_process(plan, local_rank);
    set_nic(plan->nic);
}

int hvd_agent_rank_bind(struct hvd_error *err)
{
    const char *text = getenv(HVD_ENV_AGENT_PLAN);
    struct hvd_agent_plan plan;
    int status;

    if (text == NULL || getenv(HVD_ENV_TORCHRUN_ID) == NULL) {
        return 0;
    }
    status = hvd_agent_plan_read(text, hvd_number_of_variable(HVD_ENV_TORCH_LOCAL_RANK),
                                 &plan, err);
    if (status != 0) {
        return status;
    }
    if (is_in_step(&plan)) {
        apply(&plan);
    }
    unsetenv(HVD_ENV_AGENT_PLAN);
    return 0;
}
