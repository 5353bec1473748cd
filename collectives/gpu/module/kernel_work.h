/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the kernels: pieces of memory, each with a source and a destination.
 * Used by the kernels, by the code that launches them, and by the tests' stand-in for the
 * driver.
 *
 * Pieces are cut into tiles, and each block of threads handles one tile, so that large
 * and small pieces spread evenly over the device.
 *
 *   piece   0               1    2
 *   tiles   |--|--|--|--|-| |-|  |--|--|-|      ends: 5, 6, 9
 *   block    0  1  2  3  4   5    6  7  8 */
#ifndef HVD_KERNEL_WORK_H
#define HVD_KERNEL_WORK_H

#include <stdint.h>

enum {
    /* the number that fits in the 4 KiB of arguments of a launch */
    HVD_KERNEL_PIECES = 144,
    HVD_KERNEL_THREADS = 256, /* per block */
    HVD_KERNEL_TILE = 8192, /* elements */
    HVD_KERNEL_COPY_TILE = 32768, /* bytes */
    HVD_KERNEL_POISON_THREADS = 32, /* per block of hvd_poison */
    /* elements; small, so that 100 KiB already occupy several blocks */
    HVD_KERNEL_SUM_TILE = 2048,
};

struct hvd_kernel_work {
    double factor;
    int32_t count; /* pieces */
    uint32_t divisor; /* for integers; 0 and 1: no division */
    /* number of tiles of the pieces up to and including this one */
    uint32_t ends[HVD_KERNEL_PIECES];
    const char *from[HVD_KERNEL_PIECES]; /* NULL: zeros are written */
    char *to[HVD_KERNEL_PIECES]; /* equal to from, or not overlapping it */
    int64_t counts[HVD_KERNEL_PIECES]; /* elements; bytes for the copy */
};

/* X(name, from, to) of each conversion kernel. It multiplies by the factor, and divides
 * integers by the divisor. The copy kernel, hvd_copy, works on bytes. The types are those
 * of enum hvd_dtype. */
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

/* The arguments of a reduction of `sources` arrays, element by element. The array of
 * source number `self` is at `own`; the arrays of the other sources are at `others`, in
 * order, `stride` bytes apart. The arrays are cut into tiles like pieces. */
struct hvd_kernel_sum {
    const char *others;
    const char *own;
    char *to; /* may equal own */
    int64_t stride; /* bytes from one of the other arrays to the next */
    int64_t count; /* elements */
    int32_t sources; /* at least 2 */
    int32_t self;
    int32_t op;
};

/* The arguments of hvd_poison: results of collectives, all of one type. */
struct hvd_kernel_poison {
    /* in pinned host memory; not 0: aborted, the results are invalid */
    const volatile uint32_t *aborted;
    uint64_t nan;
    uint32_t size; /* bytes of an element */
    int32_t count; /* number of results */
    char *to[HVD_KERNEL_PIECES];
    int64_t counts[HVD_KERNEL_PIECES]; /* elements */
};

enum {
    HVD_KERNEL_RANKS = 16, /* on a node, for hvd_push_NAME */
    /* blocks of such a launch: few, because all must be on the device at once */
    HVD_KERNEL_BLOCKS = 32,
    /* the beginning of an inbox: a flag of 8 bytes for each rank and block, then the call
     * that was aborted */
    HVD_KERNEL_FLAG_BYTES = HVD_KERNEL_RANKS * HVD_KERNEL_BLOCKS * 8,
    HVD_KERNEL_HEAD_BYTES = HVD_KERNEL_FLAG_BYTES + 256,
};

/* The arguments of hvd_push_NAME: see kernel_push.h. An inbox is memory of a rank's GPU:
 * the head, which was zero at first, then two slots of slot_bytes for each rank. A tensor
 * begins at a multiple of 16 bytes of a slot, a vector. */
struct hvd_kernel_push {
    double before; /* factor of each rank's elements */
    double after; /* factor of the sum */
    uint64_t nan; /* of the tensors' type */
    uint64_t call; /* number of this launch, the same on all ranks; the first is 1 */
    const volatile uint32_t *aborted; /* as in struct hvd_kernel_poison */
    uint32_t slot_bytes;
    uint32_t vectors; /* of all tensors */
    uint32_t block_vectors; /* of each block; the last may have fewer */
    int32_t count; /* tensors */
    int32_t rank;
    int32_t ranks;
    char *inboxes[HVD_KERNEL_RANKS]; /* of all ranks, in their order */
    uint32_t begin[HVD_KERNEL_PIECES]; /* first vector of each tensor; ascending */
    uint32_t counts[HVD_KERNEL_PIECES]; /* elements, at least 1 */
    const char *from[HVD_KERNEL_PIECES]; /* NULL: zeros */
    char *to[HVD_KERNEL_PIECES]; /* may equal from; NULL: the result is not stored */
};

/* X(name, type of the tensors, type in the slots) of each of these kernels, hvd_NAME. */
#define HVD_KERNEL_PUSH_LIST(X)                                                          \
    X(push_float16, HVD_FLOAT16, HVD_FLOAT16)                                            \
    X(push_bfloat16, HVD_BFLOAT16, HVD_BFLOAT16)                                         \
    X(push_float32, HVD_FLOAT32, HVD_FLOAT32)                                            \
    X(push_float64, HVD_FLOAT64, HVD_FLOAT64)                                            \
    X(push_float32_as_float16, HVD_FLOAT32, HVD_FLOAT16)                                 \
    X(push_float32_as_bfloat16, HVD_FLOAT32, HVD_BFLOAT16)

/* X(name, type) of each reduction kernel, hvd_NAME. */
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
