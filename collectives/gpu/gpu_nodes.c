/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce over several nodes that adds up within the nodes first: the ranks of a node by NCCL,
 * and then each rank its part with the same local rank of the other nodes, over the network. */
#include "collectives/gpu/gpu_cross.h"
#include "collectives/gpu/gpu_run_state.h"

bool hvd_gpu_nodes_first(const struct hvd_gpu_run *run)
{
    return run->batch->header.kind == HVD_KIND_ALLREDUCE && run->peers->cross != NULL &&
           run->peers->allreduce == HVD_GPU_ALLREDUCE_HIERARCHICAL;
}

/* What all ranks' elements are multiplied by is done by NCCL, before anything is added up: so what
 * goes between nodes is a plain sum. */
int hvd_gpu_nodes_pipe(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_proposal *proposal = &run->batch->entries[0]->proposal;
    struct hvd_gpu_pipe_config config = {
        .gpu = run->gpu,
        .batch = run->batch,
        .team = hvd_gpu_cross_team(run->peers->cross),
        .comm = run->peers->node_comm,
        .parts = run->team->local_size,
        .part = run->team->local_rank,
        .reduction = hvd_gpu_plan_reduction(proposal, run->team->layout->size,
                                            HVD_GPU_REDUCESCATTER),
    };

    config.proposal = (struct hvd_proposal){.dtype = config.reduction.dtype,
                                            .op = config.reduction.op,
                                            .prescale = 1.0,
                                            .postscale = 1.0};
    return hvd_gpu_pipe_create(&config, &run->pipe, err);
}
