/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of tensors on GPUs: their GPU, and entries that end when it has come to them.
 * Nothing of it is called before there is such a tensor.
 *
 * Threads: the progress lock is held, but for what says otherwise. */
#ifndef HVD_GPU_TENSORS_H
#define HVD_GPU_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_engine;

int hvd_gpu_tensors_open(struct hvd_engine *engine, struct hvd_error *err);

/* Ends what the device has come to; *moved if something ended. Returns 0, or a status after which
 * the job must end. */
int hvd_gpu_tensors_progress(struct hvd_engine *engine, bool *moved,
                             struct hvd_error *err);

/* When to look again; -1: no need. */
int64_t hvd_gpu_tensors_deadline(const struct hvd_engine *engine, int64_t now_ns);

/* The job has failed: all that is launched ends. */
void hvd_gpu_tensors_fail(struct hvd_engine *engine, int status, const char *text);

#endif
