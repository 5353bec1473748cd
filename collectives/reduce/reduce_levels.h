/* SPDX-License-Identifier: Apache-2.0 */
/* What there is once for each instruction set, and how a source file is compiled for one that
 * not every CPU has. Private to collectives/reduce and its tests. */
#ifndef HVD_REDUCE_LEVELS_H
#define HVD_REDUCE_LEVELS_H

#include "collectives/reduce/reduce_kernels.h"

extern const struct hvd_kernels hvd_kernels_portable[HVD_DTYPE_COUNT];
extern const struct hvd_kernels hvd_kernels_avx2[HVD_DTYPE_COUNT]; /* only on x86-64 */
extern const struct hvd_kernels hvd_kernels_avx512[HVD_DTYPE_COUNT]; /* likewise */

/* hvd_copy_stream with the stores of a level that this CPU has. */
void hvd_copy_stream_at(enum hvd_kernel_level level, void *to, const void *from,
                        size_t bytes);

/* Functions between these two are compiled for the features, as in "avx2,f16c". Headers come
 * before. */
#define HVD_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define HVD_TARGET_BEGIN(features)                                                       \
    HVD_PRAGMA(                                                                          \
        clang attribute push(__attribute__((target(features))), apply_to = function))
#define HVD_TARGET_END HVD_PRAGMA(clang attribute pop)
#else
#define HVD_TARGET_BEGIN(features)                                                       \
    HVD_PRAGMA(GCC push_options)                                                         \
    HVD_PRAGMA(GCC target(features))
#define HVD_TARGET_END HVD_PRAGMA(GCC pop_options)
#endif

#endif
