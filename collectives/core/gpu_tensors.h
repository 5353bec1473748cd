/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors on GPUs: the device as a source (loop.h), and the entries that end when the
 * device reaches them. Nothing is polled before there is such a tensor.
 *
 * Threads: the progress lock is held. */
#ifndef HVD_GPU_TENSORS_H
#define HVD_GPU_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_job;

/* Must be zeroed before use. */
struct hvd_gpu_tensors {
    int64_t lost_ns; /* when NCCL lost a peer; 0: it has not */
    bool has_stopped; /* while closing */
};

/* open: call it after the network and before the teams, which use job->gpu. join: call it
 * when the teams are open. */
int hvd_gpu_tensors_open(struct hvd_job *job, struct hvd_error *err);
void hvd_gpu_tensors_join(struct hvd_job *job);

#endif
