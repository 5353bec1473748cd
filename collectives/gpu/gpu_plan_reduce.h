/* SPDX-License-Identifier: Apache-2.0 */
/* The reductions of gpu_plan.h. Pure. */
#ifndef HVD_GPU_PLAN_REDUCE_H
#define HVD_GPU_PLAN_REDUCE_H

#include "collectives/gpu/gpu_plan.h"
#include "collectives/gpu/gpu_way.h"

size_t hvd_gpu_plan_reduce_pack(const struct hvd_gpu_plan *plan); /* of an allreduce */
size_t hvd_gpu_plan_reduce_room(const struct hvd_gpu_plan *plan);
void hvd_gpu_plan_allreduce(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps);
void hvd_gpu_plan_reducescatter(const struct hvd_gpu_plan *plan,
                                struct hvd_gpu_steps *steps);

#endif
