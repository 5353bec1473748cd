/* SPDX-License-Identifier: Apache-2.0 */
/* Core's side of the autotuner: rank 0 tells it which gradients have been averaged, and
 * tells all ranks what it wants. */
#ifndef HVD_TUNING_H
#define HVD_TUNING_H

#include "gpu_binding/base/error.h"

struct hvd_agreement;
struct hvd_batch;
struct hvd_job;
struct hvd_set;
struct hvd_tuner;

struct hvd_tuning {
    struct hvd_tuner *tuner; /* NULL: it has found its setting */
    struct hvd_agreement *agreement; /* borrowed */
    const struct hvd_set *set; /* the set whose batches count: all ranks; borrowed */
};

/* On rank 0 if the user wants to tune: job->tuning, until the loop is closed. */
int hvd_tuning_create(struct hvd_job *job, struct hvd_error *err);

/* A batch has ended; its entries have not. May change how tensors are fused. The progress
 * lock is held. */
int hvd_tuning_note(struct hvd_tuning *tuning, const struct hvd_batch *batch);

#endif
