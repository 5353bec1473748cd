/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox of a communicator: memory of this rank's GPU into which the ranks of its node
 * store their tensors (kernel_push.h). At most one for each communicator, which owns it.
 *
 * It is freed when the device has completed all work of the communicator: then no rank
 * stores into it any more. CUDA wants other ranks to have closed it by then; they do so
 * at the end of their own work, and do not use it in between. After an abort, another
 * rank may still store into it, so it is never freed if it is shared. */
#ifndef HVD_GPU_INBOX_H
#define HVD_GPU_INBOX_H

#include "collectives/gpu/gpu_module.h"
#include "collectives/gpu/module/cuda.h"
#include "collectives/gpu/module/kernel_work.h"

/* See struct hvd_gpu_module. */
int hvd_inbox_create(struct hvd_gpu_comm *comm, size_t slot_bytes,
                     struct hvd_gpu_inbox **out, struct hvd_error *err);
/* Launcher thread only, because these calls of CUDA may wait for the device. See struct
 * hvd_gpu_inbox. */
void hvd_inbox_allocate(struct hvd_gpu_inbox *inbox, CUstream stream);
void hvd_inbox_open(struct hvd_gpu_inbox *inbox);
void hvd_inbox_destroy(struct hvd_gpu_inbox *inbox);

/* retired.c. Frees an inbox whose communicator may have ended, and closes those of the
 * other ranks. */
void hvd_inbox_free(struct hvd_gpu_device *device, struct hvd_gpu_inbox *inbox);

/* Launcher thread only. Begins a call: fills in what the kernel needs of the inbox.
 * Returns how many blocks the launch may have. */
uint32_t hvd_inbox_begin(struct hvd_gpu_inbox *inbox, struct hvd_kernel_push *push);

#endif
