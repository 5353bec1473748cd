/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and streams of the GPU, for tests. Any failure ends the process. */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include <stddef.h>

#include "collectives/hvd.h"

/* Opens device HVD_TEST_GPU, or device 0. If there is none, prints the reason and returns
 * 0. */
int gpu_open(void);
int gpu_number(void); /* number of the device */

/* go_elsewhere makes the context of another device current; returns 0 if there is none.
 * come_back makes the first one current again, and returns whether the other one was
 * still current. */
int gpu_go_elsewhere(void);
int gpu_come_back(void);

void *gpu_stream(void); /* creates a stream */

/* Allocates memory on the device, which is never freed. */
void *gpu_memory(size_t bytes);
void *gpu_host_memory(size_t bytes); /* the same for pinned host memory */

/* Copies on a stream, from host to device or back. */
void gpu_copy(void *to, const void *from, size_t bytes, void *stream);

/* Describes a tensor in the device's memory; in place if output equals input. */
struct hvd_tensor gpu_tensor(const char *name, enum hvd_dtype dtype, const int64_t *shape,
                             int ndim, const void *input, void *output, void *stream);

/* Waits until the stream has done everything on it. */
void gpu_finish(void *stream);

#endif
