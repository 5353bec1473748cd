/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a process from a later one with the same number. */
#ifndef HVD_RENDEZVOUS_PROCESS_START_H
#define HVD_RENDEZVOUS_PROCESS_START_H

#include <stdint.h>
#include <sys/types.h>

/* Returns when the process started, in the kernel's ticks since boot; 0 if there is no
 * such process. */
uint64_t hvd_rendezvous_process_start(pid_t pid);

#endif
