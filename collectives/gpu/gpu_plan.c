/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch of GPU tensors comes to for NCCL. */
#include "collectives/gpu/gpu_plan.h"

#include "collectives/gpu/gpu_plan_reduce.h"

static bool is_reduction(enum hvd_kind kind)
{
    return kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM ||
           kind == HVD_KIND_REDUCESCATTER;
}

bool hvd_gpu_plan_fits(const struct hvd_proposal *proposal, int size, int nccl_version,
                       bool all_have_kernels)
{
    struct hvd_gpu_way way;

    return !is_reduction(proposal->kind) ||
           hvd_gpu_way_find(proposal, size, nccl_version, all_have_kernels, &way);
}

size_t hvd_gpu_plan_room(const struct hvd_gpu_plan *plan)
{
    return is_reduction(plan->kind) ? hvd_gpu_plan_reduce_room(plan) : 0;
}

size_t hvd_gpu_plan_pack(const struct hvd_gpu_plan *plan)
{
    return plan->kind == HVD_KIND_ALLREDUCE ? hvd_gpu_plan_reduce_pack(plan) : 0;
}

static void plan_broadcast(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    struct hvd_gpu_step step = {
        .kind = HVD_GPU_BROADCAST,
        .from = plan->rank == plan->root ? entry->input : entry->output,
        .to = entry->output,
        .count = hvd_proposal_bytes(&entry->proposal),
        .dtype = HVD_INT8,
        .peer = plan->root,
    };

    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static bool are_equal(const int64_t *rows, int size)
{
    for (int i = 1; i < size; i++) {
        if (rows[i] != rows[0]) {
            return false;
        }
    }
    return true;
}

static void plan_allgather(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    char *to = entry->result;
    struct hvd_gpu_step step = {.kind = HVD_GPU_ALLGATHER,
                                .from = entry->input,
                                .to = to,
                                .count = plan->rows[0] * row_bytes,
                                .dtype = HVD_INT8};

    if (are_equal(plan->rows, plan->size)) {
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        return;
    }
    step.kind = HVD_GPU_BROADCAST;
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    for (int i = 0; i < plan->size; i++) {
        step.peer = i;
        step.to = to;
        step.from = i == plan->rank ? entry->input : to;
        step.count = plan->rows[i] * row_bytes;
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        to += step.count;
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
}

static void plan_alltoall(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    const char *from = entry->input;
    char *to = entry->result;
    const char *own_from = NULL;
    char *own_to = NULL;

    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    for (int i = 0; i < plan->size; i++) {
        struct hvd_gpu_step send = {.kind = HVD_GPU_SEND, .dtype = HVD_INT8, .peer = i};
        struct hvd_gpu_step recv = {.kind = HVD_GPU_RECV, .dtype = HVD_INT8, .peer = i};

        send.from = from;
        send.count = plan->sent[i] * row_bytes;
        recv.to = to;
        recv.count = plan->rows[i] * row_bytes;
        from += send.count;
        to += recv.count;
        if (i == plan->rank) {
            own_from = send.from;
            own_to = recv.to;
            continue;
        }
        if (send.count > 0) {
            hvd_gpu_steps_add(steps, &send);
        }
        if (recv.count > 0) {
            hvd_gpu_steps_add(steps, &recv);
        }
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    hvd_gpu_steps_add_copy(steps, own_from, own_to, plan->sent[plan->rank] * row_bytes);
}

void hvd_gpu_plan_steps(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    switch (plan->kind) {
    case HVD_KIND_ALLREDUCE:
        hvd_gpu_plan_allreduce(plan, steps);
        break;
    case HVD_KIND_REDUCESCATTER:
        hvd_gpu_plan_reducescatter(plan, steps);
        break;
    case HVD_KIND_BROADCAST:
        plan_broadcast(plan, steps);
        break;
    case HVD_KIND_ALLGATHER:
        plan_allgather(plan, steps);
        break;
    default:
        plan_alltoall(plan, steps);
    }
}
