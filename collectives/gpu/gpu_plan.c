/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch of GPU tensors comes to for NCCL. */
#include "collectives/gpu/gpu_plan.h"

#include <math.h>

enum {
    NCCL_AVERAGES = 21000, /* and adds bfloat16 */
    NCCL_SCALES = 21100,
};

/* From here on a tensor is not copied. To copy it there and back costs two passes through the
 * device's memory, an allreduce of its own some microseconds. Not measured yet. */
static const int64_t large_bytes = 1 << 20;

static const size_t alignment = 256;

static void add_copy(struct hvd_gpu_steps *steps, const void *from, void *to,
                     int64_t bytes)
{
    if (bytes > 0 && from != to) {
        hvd_gpu_steps_add(
            steps, &(struct hvd_gpu_step){
                       .kind = HVD_GPU_COPY, .from = from, .to = to, .count = bytes});
    }
}

static void add_kind(struct hvd_gpu_steps *steps, enum hvd_gpu_step_kind kind)
{
    hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = kind});
}

/* --- reductions --- */

static bool is_float(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
           dtype == HVD_FLOAT64;
}

static bool is_reduction(enum hvd_kind kind)
{
    return kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM ||
           kind == HVD_KIND_REDUCESCATTER;
}

/* What each rank's elements are multiplied by before they are added. */
static double factor_of(const struct hvd_proposal *proposal, int size)
{
    double factor = proposal->prescale * proposal->postscale;

    return proposal->op == HVD_AVERAGE ? factor / size : factor;
}

/* NCCL takes the factor in the tensors' type. */
static bool is_normal_in(enum hvd_dtype dtype, double factor)
{
    double size = fabs(factor);

    switch (dtype) {
    case HVD_FLOAT16:
        return size >= 0x1p-14 && size <= 65504;
    case HVD_BFLOAT16:
    case HVD_FLOAT32:
        return size >= 0x1p-126 && size <= 0x1p127;
    default:
        return isfinite(factor);
    }
}

static bool scale_fits(const struct hvd_proposal *proposal, int size, int nccl_version)
{
    double factor = factor_of(proposal, size);
    bool adds = proposal->op == HVD_SUM || proposal->op == HVD_AVERAGE;

    if (!adds) {
        return proposal->prescale == 1.0 && proposal->postscale == 1.0;
    }
    if (factor == 1.0) {
        return true;
    }
    return is_float(proposal->dtype) && nccl_version >= NCCL_SCALES &&
           is_normal_in(proposal->dtype, factor);
}

bool hvd_gpu_plan_fits(const struct hvd_proposal *proposal, int size, int nccl_version)
{
    enum hvd_dtype dtype = proposal->dtype;

    if (!is_reduction(proposal->kind)) {
        return true;
    }
    if (proposal->kind == HVD_KIND_ADASUM || dtype == HVD_INT16 || dtype == HVD_UINT16 ||
        (dtype == HVD_BFLOAT16 && nccl_version < NCCL_AVERAGES)) {
        return false;
    }
    return scale_fits(proposal, size, nccl_version);
}

/* As NCCL has to be told: booleans are bytes, "or" their maximum, "and" their minimum. */
struct hvd_gpu_step hvd_gpu_plan_reduction(const struct hvd_proposal *proposal, int size,
                                           enum hvd_gpu_step_kind kind)
{
    bool is_bool = proposal->dtype == HVD_BOOL;
    bool is_or = proposal->op == HVD_SUM || proposal->op == HVD_MAX;
    bool adds = proposal->op == HVD_SUM || proposal->op == HVD_AVERAGE;

    return (struct hvd_gpu_step){
        .kind = kind,
        .dtype = is_bool ? HVD_UINT8 : proposal->dtype,
        .op = is_bool ? (is_or ? HVD_MAX : HVD_MIN)
              : adds  ? HVD_SUM
                      : proposal->op,
        .factor = factor_of(proposal, size),
    };
}

/* --- allreduce --- */

static int64_t bytes_of(const struct hvd_entry *entry)
{
    return hvd_proposal_bytes(&entry->proposal);
}

static bool is_packed(const struct hvd_gpu_plan *plan, int i)
{
    return plan->count > 1 && bytes_of(plan->entries[i]) < large_bytes;
}

static size_t aligned(size_t bytes)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

static int64_t packed_bytes(const struct hvd_gpu_plan *plan)
{
    int64_t bytes = 0;

    for (int i = 0; i < plan->count; i++) {
        bytes += is_packed(plan, i) ? bytes_of(plan->entries[i]) : 0;
    }
    return bytes;
}

size_t hvd_gpu_plan_room(const struct hvd_gpu_plan *plan)
{
    size_t bytes;

    if (plan->kind != HVD_KIND_ALLREDUCE) {
        return 0;
    }
    bytes = aligned((size_t)packed_bytes(plan));
    for (int i = 0; i < plan->count; i++) {
        if (!is_packed(plan, i) && plan->entries[i]->is_absent) {
            bytes += aligned((size_t)bytes_of(plan->entries[i]));
        }
    }
    return bytes;
}

/* What comes from a joined rank: zeros, in memory of their own. It may still have some of the
 * tensors. */
static void zero_absent(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    size_t bytes = hvd_gpu_plan_room(plan);
    struct hvd_gpu_step zero = {
        .kind = HVD_GPU_ZERO, .to = plan->room, .count = (int64_t)bytes};
    bool has_absent = false;

    for (int i = 0; i < plan->count; i++) {
        has_absent |= plan->entries[i]->is_absent;
    }
    if (bytes > 0 && has_absent) {
        hvd_gpu_steps_add(steps, &zero);
    }
}

static void copy_packed(const struct hvd_gpu_plan *plan, bool is_in,
                        struct hvd_gpu_steps *steps)
{
    char *at = plan->room;

    for (int i = 0; i < plan->count; i++) {
        const struct hvd_entry *entry = plan->entries[i];

        if (!is_packed(plan, i)) {
            continue;
        }
        if (!entry->is_absent && is_in) {
            add_copy(steps, entry->input, at, bytes_of(entry));
        } else if (!entry->is_absent) {
            add_copy(steps, at, entry->output, bytes_of(entry));
        }
        at += bytes_of(entry);
    }
}

static void add_allreduce(const struct hvd_gpu_plan *plan, const void *from, void *to,
                          int64_t bytes, struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step step = hvd_gpu_plan_reduction(&plan->entries[0]->proposal,
                                                      plan->size, HVD_GPU_ALLREDUCE);

    step.from = from;
    step.to = to;
    step.count = bytes / (int64_t)hvd_dtype_bytes(step.dtype);
    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static void reduce_all(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    int64_t packed = packed_bytes(plan);
    char *at = plan->room + aligned((size_t)packed);

    add_allreduce(plan, plan->room, plan->room, packed, steps);
    for (int i = 0; i < plan->count; i++) {
        const struct hvd_entry *entry = plan->entries[i];

        if (is_packed(plan, i)) {
            continue;
        }
        if (entry->is_absent) {
            add_allreduce(plan, at, at, bytes_of(entry), steps);
            at += aligned((size_t)bytes_of(entry));
        } else {
            add_allreduce(plan, entry->input, entry->output, bytes_of(entry), steps);
        }
    }
}

static void plan_allreduce(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    zero_absent(plan, steps);
    copy_packed(plan, true, steps);
    add_kind(steps, HVD_GPU_GROUP);
    reduce_all(plan, steps);
    add_kind(steps, HVD_GPU_GROUP_END);
    copy_packed(plan, false, steps);
}

/* --- the others --- */

static void plan_reducescatter(const struct hvd_gpu_plan *plan,
                               struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    int64_t rows = entry->proposal.shape[0], each = rows / plan->size;
    int64_t extra = rows % plan->size, row_bytes = hvd_entry_row_bytes(entry);
    struct hvd_gpu_step step =
        hvd_gpu_plan_reduction(&entry->proposal, plan->size, HVD_GPU_REDUCESCATTER);
    int64_t row_count = row_bytes / (int64_t)hvd_dtype_bytes(step.dtype);
    const char *from = entry->input;

    step.from = from;
    step.to = entry->output;
    step.count = each * row_count;
    if (extra == 0) {
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        return;
    }
    step.kind = HVD_GPU_REDUCE;
    add_kind(steps, HVD_GPU_GROUP);
    for (int i = 0; i < plan->size; i++) {
        int64_t part = each + (i < extra ? 1 : 0);

        step.peer = i;
        step.from = from;
        step.to = i == plan->rank ? entry->output : NULL;
        step.count = part * row_count;
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        from += part * row_bytes;
    }
    add_kind(steps, HVD_GPU_GROUP_END);
}

static void plan_broadcast(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    struct hvd_gpu_step step = {
        .kind = HVD_GPU_BROADCAST,
        .from = plan->rank == plan->root ? entry->input : entry->output,
        .to = entry->output,
        .count = bytes_of(entry),
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
    add_kind(steps, HVD_GPU_GROUP);
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
    add_kind(steps, HVD_GPU_GROUP_END);
}

static void plan_alltoall(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    const char *from = entry->input;
    char *to = entry->result;
    const char *own_from = NULL;
    char *own_to = NULL;

    add_kind(steps, HVD_GPU_GROUP);
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
    add_kind(steps, HVD_GPU_GROUP_END);
    add_copy(steps, own_from, own_to, plan->sent[plan->rank] * row_bytes);
}

void hvd_gpu_plan_steps(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    switch (plan->kind) {
    case HVD_KIND_ALLREDUCE:
        plan_allreduce(plan, steps);
        break;
    case HVD_KIND_REDUCESCATTER:
        plan_reducescatter(plan, steps);
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
