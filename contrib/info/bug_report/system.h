/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of hvd-info --bug-report that need no other program. Each prints lines of the
 * form "SUBJECT: FACT" to standard output. */
#ifndef HVD_INFO_SYSTEM_H
#define HVD_INFO_SYSTEM_H

#include "gpu_binding/base/error.h"

/* hvd's version, and how it was built. */
int hvd_info_build_print(struct hvd_error *err);

/* The kernel, the C library, the distribution, the processor and NVIDIA's driver. */
int hvd_info_system_print(struct hvd_error *err);

/* The limits of this process, and the size of /dev/shm. */
int hvd_info_limits_print(struct hvd_error *err);

/* The version of the PMIx library that the dynamic linker finds. */
int hvd_info_pmix_print(struct hvd_error *err);

/* The variables of hvd, Horovod, NCCL, UCX and Slurm, and some others that change how
 * they work. Shows only values that are never secret. */
int hvd_info_environment_print(struct hvd_error *err);

#endif
