/* SPDX-License-Identifier: Apache-2.0 */
/* Where the progress thread runs, if the user says so: HOROVOD_THREAD_AFFINITY. */
#ifndef HVD_THREAD_CPU_H
#define HVD_THREAD_CPU_H

#include <pthread.h>

#include "gpu_binding/base/error.h"

/* The cpu for a local rank in a list "0,8,16,24", one for each local rank; those after
 * the local size are for fuller nodes. Pure. Returns the cpu, or HVD_ERR_ARG with a text
 * that names variable and value. */
int hvd_thread_cpu_find(const char *list, int local_rank, int local_size,
                        struct hvd_error *err);

/* Moves a thread to a cpu for good. HVD_ERR_SYS where the node, or the job's part of it,
 * has no such cpu; the thread then stays where it may run now. */
int hvd_thread_cpu_pin(pthread_t thread, int cpu, struct hvd_error *err);

#endif
