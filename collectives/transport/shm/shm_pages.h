/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a memfd, page by page. Any thread. */
#ifndef HVD_SHM_PAGES_H
#define HVD_SHM_PAGES_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

size_t hvd_shm_round_to_page(size_t bytes);

/* Backs a range of the file with memory, growing the file if necessary. A lack of memory
 * must be an error now, not a SIGBUS in the middle of training. */
int hvd_shm_back(int fd, size_t at, size_t bytes, struct hvd_error *err);

#endif
