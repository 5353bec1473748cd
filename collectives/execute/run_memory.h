/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as large as a batch. Private to collectives/execute*.c. */
#ifndef HVD_RUN_MEMORY_H
#define HVD_RUN_MEMORY_H

#include <stddef.h>

/* So many bytes, at least 1, aligned to 64 or more; the caller's, to end with free. NULL without
 * memory. */
void *hvd_run_memory(size_t bytes);

#endif
