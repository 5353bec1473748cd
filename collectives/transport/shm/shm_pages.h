/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates the memory of a memfd, in pages. Any thread. */
#ifndef HVD_SHM_PAGES_H
#define HVD_SHM_PAGES_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

size_t hvd_shm_round_to_page(size_t bytes);

/* Backs a range of the file with memory, growing the file if necessary, so that a lack of
 * memory is an error now and not a SIGBUS in the middle of training. */
int hvd_shm_back(int fd, size_t at, size_t bytes, struct hvd_error *err);

#endif
