/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of each instruction set. Private to collectives/reduce and its tests. */
#ifndef HVD_REDUCE_LEVELS_H
#define HVD_REDUCE_LEVELS_H

#include "collectives/reduce/reduce_kernels.h"

extern const struct hvd_kernels hvd_kernels_portable[HVD_DTYPE_COUNT];
extern const struct hvd_kernels hvd_kernels_avx2[HVD_DTYPE_COUNT]; /* only on x86-64 */
extern const struct hvd_kernels hvd_kernels_avx512[HVD_DTYPE_COUNT]; /* only on x86-64 */
extern const struct hvd_kernels hvd_kernels_neon[HVD_DTYPE_COUNT]; /* only on aarch64 */

/* Copies like hvd_copy_stream, with the stores of a level, which this CPU must have. */
void hvd_copy_stream_at(enum hvd_kernel_level level, void *to, const void *from,
                        size_t bytes);

#endif
