/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU of the progress thread, if the user chooses one: HOROVOD_THREAD_AFFINITY. */
#ifndef HVD_THREAD_CPU_H
#define HVD_THREAD_CPU_H

#include <pthread.h>

#include "gpu_binding/base/error.h"

/* Finds the CPU of a local rank in a list such as "0,8,16,24", which has one for each
 * local rank; nodes with fewer ranks ignore the rest. Pure computation. Returns the CPU,
 * or HVD_ERR_ARG with a text that names the variable and its value. */
int hvd_thread_cpu_find(const char *list, int local_rank, int local_size,
                        struct hvd_error *err);

/* Pins a thread to a CPU. Returns HVD_ERR_SYS if the node, or the job's part of it, has
 * no such CPU; the thread then keeps its CPUs. */
int hvd_thread_cpu_pin(pthread_t thread, int cpu, struct hvd_error *err);

#endif
