/* SPDX-License-Identifier: Apache-2.0 */
/* The teams (run/teams.h), which run batches, as a source (loop.h).
 *
 * Threads: the progress lock is held. */
#ifndef HVD_BATCHES_H
#define HVD_BATCHES_H

#include "gpu_binding/base/error.h"

struct hvd_job;

/* Opens the teams, after the network and the runtime of the GPU. */
int hvd_batches_open(struct hvd_job *job, struct hvd_error *err);

#endif
