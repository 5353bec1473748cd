/* SPDX-License-Identifier: Apache-2.0 */
/* The number of open files that a rank needs, and the limit on them (RLIMIT_NOFILE).
 *
 * The soft limit is raised only if the size of the job needs it: programs that use
 * select() cannot use descriptors above 1023, and do not get any in a small job. */
#ifndef HVD_OPEN_FILES_H
#define HVD_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/layout.h"

/* Returns the largest number of descriptors that hvd and UCX open in this rank. is_tcp:
 * TCP connects the nodes, otherwise RDMA. */
int64_t hvd_open_files_needed(const struct hvd_layout *layout, int rank, bool is_tcp);

/* Raises the limit so that this many files can be opened besides those that are open.
 * Returns 0, or HVD_ERR_SYS with the commands to type if the hard limit is too low. */
int hvd_open_files_provide(int64_t needed, struct hvd_error *err);

#endif
