/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and streams of the GPU, for tests. All that goes wrong ends the process. */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include <stddef.h>

#include "collectives/hvd.h"

/* Opens device HVD_TEST_GPU, or 0. False, and the reason printed: there is none. */
int gpu_open(void);
int gpu_number(void); /* its number */

/* Makes the context of another device the thread's; 0: there is none. come_back: back to
 * the first one; whether the other one still was the thread's. */
int gpu_go_elsewhere(void);
int gpu_come_back(void);

void *gpu_stream(void); /* a new one */

/* Fresh memory on the device, for good. */
void *gpu_memory(size_t bytes);
void *gpu_host_memory(size_t bytes); /* likewise pinned memory of the host */

/* On a stream: from host to device or back. */
void gpu_copy(void *to, const void *from, size_t bytes, void *stream);

/* A tensor in the device's memory; in place where output is input. */
struct hvd_tensor gpu_tensor(const char *name, enum hvd_dtype dtype, const int64_t *shape,
                             int ndim, const void *input, void *output, void *stream);

/* Until the stream has done all that is on it. */
void gpu_finish(void *stream);

#endif
