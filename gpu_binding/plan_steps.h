/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that fill the rows of a plan, in this order; for plan*.c only. */
#ifndef HVD_PLAN_STEPS_H
#define HVD_PLAN_STEPS_H

#include "gpu_binding/base/attr.h"
#include "gpu_binding/plan.h"

/* A plan under construction. */
struct hvd_plan_work {
    const struct hvd_topology *topology;
    struct hvd_plan_options options;
    /* the allowed cpus, but at most threads_per_core of each core */
    struct hvd_cpuset usable;
    struct hvd_plan *plan;
};

/* Deals the cpus of each socket out to the rows on that socket (plan_cpus.c). */
int hvd_plan_deal_cpus(struct hvd_plan_work *work, struct hvd_error *err);

/* Gives each row the NICs nearest to its GPU (plan_nics.c). */
int hvd_plan_deal_nics(struct hvd_plan_work *work, struct hvd_error *err);

/* Adds notes on what is unusual about the plan (plan_notes.c). */
int hvd_plan_explain(struct hvd_plan_work *work, struct hvd_error *err);

/* Adds one sentence to the notes. */
int hvd_plan_note(struct hvd_plan *plan, struct hvd_error *err, const char *format, ...)
    HVD_PRINTF(3, 4);

#endif
