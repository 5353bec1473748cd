/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel is told: pieces of memory, each to be read from one place and written to
 * another. Shared by the kernels, by who launches them, and by the stand-in for the
 * driver.
 *
 * Pieces are cut into tiles, and each block of threads has one tile: large and small
 * pieces are spread evenly over the device.
 *
 *   piece   0               1    2
 *   tiles   |--|--|--|--|-| |-|  |--|--|-|      ends: 5, 6, 9
 *   block    0  1  2  3  4   5    6  7  8
 * / */
#ifndef HVD_KERNEL_WORK_H
#define HVD_KERNEL_WORK_H

#include <stdint.h>

enum {
    HVD_KERNEL_PIECES = 144, /* as many as go into the 4 KiB that a launch may carry */
    HVD_KERNEL_THREADS = 256, /* of a block */
    HVD_KERNEL_TILE = 8192, /* elements */
    HVD_KERNEL_COPY_TILE = 32768, /* bytes */
    HVD_KERNEL_POISON_THREADS = 32, /* of a block of hvd_poison */
    HVD_KERNEL_SUM_TILE = 2048, /* elements: a share of some 100 KiB is some blocks */
};

struct hvd_kernel_work {
    double factor;
    int32_t count; /* pieces */
    uint32_t divisor; /* of integers; 0 and 1: none */
    uint32_t ends[HVD_KERNEL_PIECES]; /* tiles of all pieces up to this one */
    const char *from[HVD_KERNEL_PIECES]; /* NULL: zeros are written */
    char *to[HVD_KERNEL_PIECES]; /* the same as from, or apart from it */
    int64_t counts[HVD_KERNEL_PIECES]; /* elements; of the copy bytes */
};

/* X(name, from, to) of each kernel that converts, which multiplies by the factor, and
 * divides integers, on the way. The copy, hvd_copy, takes bytes. The types are of enum
 * hvd_dtype. */
#define HVD_KERNEL_LIST(X)                                                               \
    X(uint8, HVD_UINT8, HVD_UINT8)                                                       \
    X(int8, HVD_INT8, HVD_INT8)                                                          \
    X(int32, HVD_INT32, HVD_INT32)                                                       \
    X(int64, HVD_INT64, HVD_INT64)                                                       \
    X(uint32, HVD_UINT32, HVD_UINT32)                                                    \
    X(uint64, HVD_UINT64, HVD_UINT64)                                                    \
    X(float16, HVD_FLOAT16, HVD_FLOAT16)                                                 \
    X(bfloat16, HVD_BFLOAT16, HVD_BFLOAT16)                                              \
    X(float32, HVD_FLOAT32, HVD_FLOAT32)                                                 \
    X(float64, HVD_FLOAT64, HVD_FLOAT64)                                                 \
    X(float16_to_float32, HVD_FLOAT16, HVD_FLOAT32)                                      \
    X(float32_to_float16, HVD_FLOAT32, HVD_FLOAT16)                                      \
    X(bfloat16_to_float32, HVD_BFLOAT16, HVD_FLOAT32)                                    \
    X(float32_to_bfloat16, HVD_FLOAT32, HVD_BFLOAT16)                                    \
    X(float32_to_float64, HVD_FLOAT32, HVD_FLOAT64)                                      \
    X(float64_to_float32, HVD_FLOAT64, HVD_FLOAT32)

enum {
    HVD_KERNEL_PLUS,
    HVD_KERNEL_TIMES,
    HVD_KERNEL_LESSER,
    HVD_KERNEL_GREATER,
};

/* Memory that is added up, element by element: source `self` is at own, those before and
 * behind it at others, one behind the other. Tiles are as above, of one piece. */
struct hvd_kernel_sum {
    const char *others;
    const char *own;
    char *to; /* may be own */
    int64_t stride; /* bytes from one of the others to the next */
    int64_t count; /* elements */
    int32_t sources; /* at least 2 */
    int32_t self;
    int32_t op;
};

/* Results of collectives, of one type. */
struct hvd_kernel_poison {
    const volatile uint32_t *aborted; /* in pinned host memory; not 0: they are wrong */
    uint64_t nan;
    uint32_t size; /* of an element */
    int32_t count; /* results */
    char *to[HVD_KERNEL_PIECES];
    int64_t counts[HVD_KERNEL_PIECES]; /* elements */
};

/* X(name, type) of each kernel that adds up, hvd_NAME. */
#define HVD_KERNEL_SUM_LIST(X)                                                           \
    X(sum_uint8, HVD_UINT8)                                                              \
    X(sum_int8, HVD_INT8)                                                                \
    X(sum_int32, HVD_INT32)                                                              \
    X(sum_int64, HVD_INT64)                                                              \
    X(sum_uint32, HVD_UINT32)                                                            \
    X(sum_uint64, HVD_UINT64)                                                            \
    X(sum_float16, HVD_FLOAT16)                                                          \
    X(sum_bfloat16, HVD_BFLOAT16)                                                        \
    X(sum_float32, HVD_FLOAT32)                                                          \
    X(sum_float64, HVD_FLOAT64)

#endif
