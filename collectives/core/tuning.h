/* SPDX-License-Identifier: Apache-2.0 */
/* Core's part of the autotuner: rank 0 tells it which gradients have been averaged, and
 * sends its settings to all ranks. */
#ifndef HVD_TUNING_H
#define HVD_TUNING_H

#include "gpu_binding/base/error.h"

struct hvd_agreement;
struct hvd_batch;
struct hvd_job;
struct hvd_set;
struct hvd_tuner;

struct hvd_tuning {
    struct hvd_tuner *tuner; /* NULL: the tuner has settled on a setting */
    struct hvd_agreement *agreement; /* borrowed */
    const struct hvd_set *set; /* the set whose batches count: the global one; borrowed */
};

/* Creates job->tuning on rank 0 if the user wants to tune; the loop closes it. */
int hvd_tuning_create(struct hvd_job *job, struct hvd_error *err);

/* Notes a batch that has run, before its entries end. May change how tensors are fused.
 * The progress lock is held. */
int hvd_tuning_note(struct hvd_tuning *tuning, const struct hvd_batch *batch);

#endif
