/* SPDX-License-Identifier: Apache-2.0 */
/* How many open files a rank needs, and the limit on them (RLIMIT_NOFILE).
 *
 * The soft limit is raised only where the size of the job needs it: programs that use
 * select() cannot use descriptors above 1023, and get none while the job is small. */
#ifndef HVD_OPEN_FILES_H
#define HVD_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/layout.h"

/* Those of hvd and UCX in this rank, at most. is_tcp: between nodes there is TCP, else
 * RDMA. */
int64_t hvd_open_files_needed(const struct hvd_layout *layout, int rank, bool is_tcp);

/* Sees that so many can be opened besides those that are open. Returns 0, or HVD_ERR_SYS
 * with what to type when the hard limit is too low. */
int hvd_open_files_provide(int64_t needed, struct hvd_error *err);

#endif
