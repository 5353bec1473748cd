/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a reduction between NCCL and the kernels. */
#include "collectives/gpu/gpu_reduction.h"

#include <math.h>

enum {
    NCCL_AVERAGES = 21000, /* the first version with averages and bfloat16 */
    NCCL_SCALES = 21100,
};

static bool is_half(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16;
}

static bool is_float(enum hvd_dtype dtype)
{
    return is_half(dtype) || dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
}

/* Whether NCCL can apply the factor in this type without losing precision or range. */
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

/* For NCCL, booleans are bytes: their maximum is "or", their minimum is "and". NCCL has
 * no "xor". */
static struct hvd_gpu_reduction plain_reduction(const struct hvd_descriptor *descriptor)
{
    bool is_bool = descriptor->dtype == HVD_BOOL;
    bool is_or = descriptor->op == HVD_SUM || descriptor->op == HVD_MAX ||
                 descriptor->op == HVD_BOR;

    return (struct hvd_gpu_reduction){
        .dtype = is_bool ? HVD_UINT8 : descriptor->dtype,
        .op = is_bool                         ? (is_or ? HVD_MAX : HVD_MIN)
              : descriptor->op == HVD_AVERAGE ? HVD_SUM
                                              : descriptor->op,
        .before = 1.0,
        .within = 1.0,
        .after = 1.0,
        .divisor = 1,
    };
}

/* Averages of floats are folded into the factor; those of integers use the divisor. */
static double postscale_of(const struct hvd_descriptor *descriptor, int size)
{
    bool is_folded = descriptor->op == HVD_AVERAGE && is_float(descriptor->dtype);

    return is_folded ? descriptor->postscale / size : descriptor->postscale;
}

/* Whether prescale and postscale can be combined into one factor: in a sum of floats. */
static bool adds_floats(const struct hvd_descriptor *descriptor,
                        const struct hvd_gpu_reduction *reduction)
{
    return reduction->op == HVD_SUM && is_float(descriptor->dtype);
}

/* Lets kernels scale before and after NCCL. Sums of floats are scaled only before, which
 * saves the second pass. */
static void scale_by_kernel(const struct hvd_descriptor *descriptor, int size,
                            struct hvd_gpu_reduction *reduction)
{
    double after = postscale_of(descriptor, size), total = descriptor->prescale * after;
    bool at_once =
        adds_floats(descriptor, reduction) && is_normal_in(descriptor->dtype, total);

    reduction->by_kernel = true;
    reduction->before = at_once ? total : descriptor->prescale;
    reduction->after = at_once ? 1.0 : after;
    if (descriptor->op == HVD_AVERAGE && !is_float(descriptor->dtype)) {
        reduction->divisor = (uint32_t)size;
    }
    if (is_half(descriptor->dtype) &&
        (!is_normal_in(descriptor->dtype, reduction->before) ||
         !is_normal_in(descriptor->dtype, reduction->after))) {
        reduction->dtype = HVD_FLOAT32;
    }
}

/* Finds the reduction for a wire type. Kernels convert to it, so they also scale, in
 * float32. bfloat16 has the range of float32, so all factors are applied before rounding.
 * In float16 a small gradient divided by the number of ranks would become 0, so that
 * division is done at the end. */
static bool find_wire_reduction(const struct hvd_descriptor *descriptor, int size,
                                int nccl_version, bool has_kernels,
                                struct hvd_gpu_reduction *reduction)
{
    double after = postscale_of(descriptor, size), total = descriptor->prescale * after;
    bool at_once = descriptor->wire == HVD_BFLOAT16 && is_normal_in(HVD_BFLOAT16, total);

    reduction->dtype = (enum hvd_dtype)descriptor->wire;
    reduction->by_kernel = true;
    reduction->before = at_once ? total : descriptor->prescale;
    reduction->after = at_once ? 1.0 : after;
    return has_kernels &&
           (descriptor->wire == HVD_FLOAT16 || nccl_version >= NCCL_AVERAGES);
}

bool hvd_gpu_reduction_find(const struct hvd_descriptor *descriptor, int size,
                            int nccl_version, bool has_kernels,
                            struct hvd_gpu_reduction *reduction)
{
    enum hvd_dtype dtype = descriptor->dtype;
    bool is_wide = dtype == HVD_BFLOAT16 && nccl_version < NCCL_AVERAGES;
    double after = postscale_of(descriptor, size), total = descriptor->prescale * after;
    bool is_divided =
        descriptor->op == HVD_AVERAGE && !is_float(descriptor->dtype) && size > 1;
    bool is_scaled = descriptor->prescale != 1.0 || after != 1.0 || is_divided;

    *reduction = plain_reduction(descriptor);
    if (descriptor->wire != 0) {
        return find_wire_reduction(descriptor, size, nccl_version, has_kernels,
                                   reduction);
    }
    if (descriptor->kind == HVD_KIND_ADASUM || dtype == HVD_INT16 ||
        dtype == HVD_UINT16 || descriptor->op == HVD_BXOR ||
        (descriptor->op >= HVD_BAND && dtype != HVD_BOOL)) {
        return false;
    }
    if (adds_floats(descriptor, reduction)) {
        is_scaled = total != 1.0;
    }
    if (dtype == HVD_BOOL || (!is_scaled && !is_wide)) {
        return true;
    }
    if (adds_floats(descriptor, reduction) && nccl_version >= NCCL_SCALES &&
        is_normal_in(dtype, total)) {
        reduction->within = total;
        return true;
    }
    scale_by_kernel(descriptor, size, reduction);
    reduction->dtype = is_wide ? HVD_FLOAT32 : reduction->dtype;
    return has_kernels;
}

struct hvd_gpu_reduction
hvd_gpu_reduction_of_packed(const struct hvd_gpu_reduction *reduction, bool has_kernels)
{
    struct hvd_gpu_reduction packed = *reduction;

    if (has_kernels && packed.within != 1.0) {
        packed.before = packed.within; /* 1.0 if NCCL would have scaled */
        packed.within = 1.0;
        packed.by_kernel = true;
    }
    return packed;
}

struct hvd_gpu_step hvd_gpu_reduction_step(const struct hvd_gpu_reduction *reduction,
                                           enum hvd_gpu_step_kind kind)
{
    return (struct hvd_gpu_step){.kind = kind,
                                 .dtype = reduction->dtype,
                                 .op = reduction->op,
                                 .factor = reduction->within};
}

struct hvd_gpu_step hvd_gpu_reduction_move_in(const struct hvd_gpu_reduction *reduction,
                                              enum hvd_dtype dtype)
{
    return (struct hvd_gpu_step){.kind = HVD_GPU_MOVE,
                                 .dtype = dtype,
                                 .to_dtype = reduction->dtype,
                                 .factor = reduction->before};
}

struct hvd_gpu_step hvd_gpu_reduction_move_out(const struct hvd_gpu_reduction *reduction,
                                               enum hvd_dtype dtype)
{
    return (struct hvd_gpu_step){.kind = HVD_GPU_MOVE,
                                 .dtype = reduction->dtype,
                                 .to_dtype = dtype,
                                 .factor = reduction->after,
                                 .divisor = reduction->divisor};
}
