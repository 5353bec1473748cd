/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of the autotuner: rank 0 tells it which gradients have been averaged, and
 * tells all ranks what it wants. */
#ifndef HVD_TUNING_H
#define HVD_TUNING_H

#include "gpu_binding/base/error.h"

struct hvd_batch;
struct hvd_engine;

/* On rank 0 if the user wants one: engine->tuner, until it is over or the loop is closed. */
int hvd_tuning_create(struct hvd_engine *engine, struct hvd_error *err);

/* While there is a tuner: a batch has ended; its entries have not. May change how tensors are fused.
 * The progress lock is held. */
int hvd_tuning_note(struct hvd_engine *engine, const struct hvd_batch *batch);

#endif
