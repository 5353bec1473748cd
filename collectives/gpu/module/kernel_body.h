/* SPDX-License-Identifier: Apache-2.0 */
/* The copy and the conversion kernels, one thread's part: hvd_kernel_NAME(work, block,
 * thread), where NAME is copy or a name in HVD_KERNEL_LIST. Compiled by nvcc for GPUs,
 * and as C for the stand-in for a GPU in the tests.
 *
 * If source and destination are equally aligned, neighbouring threads move 16 bytes each.
 * Any address and any number of elements gives the right result. */
#ifndef HVD_KERNEL_BODY_H
#define HVD_KERNEL_BODY_H

#include "collectives/gpu/module/kernel_numbers.h"
#include "collectives/gpu/module/kernel_work.h"

enum {
    HVD_KERNEL_AT_ONCE = 4, /* vectors that a thread of the copy loads before it stores */
};

/* The part of a piece that one block handles. */
struct hvd_kernel_tile {
    const char *from; /* NULL: zeros */
    char *to;
    uint32_t count; /* elements */
};

HVD_KERNEL_FUNCTION int32_t hvd_kernel_piece(const struct hvd_kernel_work *work,
                                             uint32_t block)
{
    int32_t first = 0, last = work->count - 1;

    while (first < last) {
        int32_t middle = (first + last) / 2;

        if (work->ends[middle] <= block) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first;
}

HVD_KERNEL_FUNCTION struct hvd_kernel_tile
hvd_kernel_tile(const struct hvd_kernel_work *work, uint32_t block, uint32_t tile_count,
                uint32_t from_size, uint32_t to_size)
{
    int32_t piece = hvd_kernel_piece(work, block);
    uint32_t before = piece > 0 ? work->ends[piece - 1] : 0;
    int64_t first = (int64_t)(block - before) * tile_count;
    int64_t left = work->counts[piece] - first;
    const char *from = work->from[piece];
    struct hvd_kernel_tile tile;

    tile.from = from != NULL ? from + first * from_size : NULL;
    tile.to = work->to[piece] + first * to_size;
    tile.count = left < (int64_t)tile_count ? (uint32_t)left : tile_count;
    return tile;
}

/* --- copying --- */

HVD_KERNEL_FUNCTION void hvd_kernel_copy_vectors(const char *from, char *to,
                                                 uint32_t count, uint32_t thread)
{
    const uint32_t stride = HVD_KERNEL_THREADS;
    uint32_t at = thread;
    hvd_vector some[HVD_KERNEL_AT_ONCE];

    for (; at + (HVD_KERNEL_AT_ONCE - 1) * stride < count;
         at += HVD_KERNEL_AT_ONCE * stride) {
        HVD_KERNEL_UNROLL
        for (uint32_t i = 0; i < HVD_KERNEL_AT_ONCE; i++) {
            some[i] = hvd_load_vector(from + (at + i * stride) * HVD_KERNEL_VECTOR);
        }
        HVD_KERNEL_UNROLL
        for (uint32_t i = 0; i < HVD_KERNEL_AT_ONCE; i++) {
            hvd_store_vector(to + (at + i * stride) * HVD_KERNEL_VECTOR, some[i]);
        }
    }
    for (; at < count; at += stride) {
        hvd_store_vector(to + at * HVD_KERNEL_VECTOR,
                         hvd_load_vector(from + at * HVD_KERNEL_VECTOR));
    }
}

HVD_KERNEL_FUNCTION void hvd_kernel_zero_vectors(char *to, uint32_t count,
                                                 uint32_t thread)
{
    const hvd_vector zero = {0, 0, 0, 0};

    for (uint32_t at = thread; at < count; at += HVD_KERNEL_THREADS) {
        hvd_store_vector(to + at * HVD_KERNEL_VECTOR, zero);
    }
}

/* Copies units of 1, 2, 4 or 8 bytes; both addresses are aligned to that size. */
HVD_KERNEL_FUNCTION void hvd_kernel_copy_units(const char *from, char *to, uint32_t size,
                                               uint32_t count, uint32_t thread)
{
    for (uint32_t at = thread; at < count; at += HVD_KERNEL_THREADS) {
        uint64_t bits = from != NULL ? hvd_load_bits(from + at * size, size) : 0;

        hvd_store_bits(to + at * size, size, bits);
    }
}

/* Returns the largest unit to which both addresses are equally aligned. */
HVD_KERNEL_FUNCTION uint32_t hvd_kernel_unit(const char *from, const char *to)
{
    uint32_t between = (hvd_kernel_offset(from, HVD_KERNEL_VECTOR) -
                        hvd_kernel_offset(to, HVD_KERNEL_VECTOR)) &
                       (HVD_KERNEL_VECTOR - 1);

    return from == NULL || between == 0 ? HVD_KERNEL_VECTOR : between & (0 - between);
}

HVD_KERNEL_FUNCTION void hvd_kernel_copy(const struct hvd_kernel_work *work,
                                         uint32_t block, uint32_t thread)
{
    struct hvd_kernel_tile tile =
        hvd_kernel_tile(work, block, HVD_KERNEL_COPY_TILE, 1, 1);
    uint32_t unit = hvd_kernel_unit(tile.from, tile.to);
    uint32_t skew = hvd_kernel_offset(tile.to, unit);
    uint32_t head = skew > 0 ? unit - skew : 0, units;

    head = head < tile.count ? head : tile.count;
    hvd_kernel_copy_units(tile.from, tile.to, 1, head, thread);
    tile.from = tile.from != NULL ? tile.from + head : NULL;
    tile.to += head;
    tile.count -= head;
    units = tile.count / unit;
    if (unit < HVD_KERNEL_VECTOR) {
        hvd_kernel_copy_units(tile.from, tile.to, unit, units, thread);
    } else if (tile.from != NULL) {
        hvd_kernel_copy_vectors(tile.from, tile.to, units, thread);
    } else {
        hvd_kernel_zero_vectors(tile.to, units, thread);
    }
    tile.from = tile.from != NULL ? tile.from + units * unit : NULL;
    hvd_kernel_copy_units(tile.from, tile.to + units * unit, 1, tile.count % unit,
                          thread);
}

/* --- converting --- */

/* FROM, TO: unsigned integers as wide as the elements. NUMBER: the type of the
 * multiplication. */
#define HVD_KERNEL_CONVERT_FLOAT(NAME, FROM, TO, NUMBER, LOAD, STORE)                    \
    HVD_KERNEL_FUNCTION TO hvd_convert_##NAME(FROM bits, NUMBER factor,                  \
                                              uint32_t divisor)                          \
    {                                                                                    \
        (void)divisor;                                                                   \
        return (TO)hvd_bits_##STORE((NUMBER)hvd_number_##LOAD(bits) * factor);           \
    }

HVD_KERNEL_CONVERT_FLOAT(float16, uint16_t, uint16_t, float, float16, float16)
HVD_KERNEL_CONVERT_FLOAT(bfloat16, uint16_t, uint16_t, float, bfloat16, bfloat16)
HVD_KERNEL_CONVERT_FLOAT(float32, uint32_t, uint32_t, float, float32, float32)
HVD_KERNEL_CONVERT_FLOAT(float64, uint64_t, uint64_t, double, float64, float64)
HVD_KERNEL_CONVERT_FLOAT(float16_to_float32, uint16_t, uint32_t, float, float16, float32)
HVD_KERNEL_CONVERT_FLOAT(float32_to_float16, uint32_t, uint16_t, float, float32, float16)
HVD_KERNEL_CONVERT_FLOAT(bfloat16_to_float32, uint16_t, uint32_t, float, bfloat16,
                         float32)
HVD_KERNEL_CONVERT_FLOAT(float32_to_bfloat16, uint32_t, uint16_t, float, float32,
                         bfloat16)
HVD_KERNEL_CONVERT_FLOAT(float32_to_float64, uint32_t, uint64_t, double, float32, float64)
HVD_KERNEL_CONVERT_FLOAT(float64_to_float32, uint64_t, uint32_t, double, float64, float32)

/* BITS: an unsigned integer as wide as the element. TYPE: the element's type. WIDE: at
 * least as wide, so that the divisor fits. The result is exact if the factor is 1. */
#define HVD_KERNEL_CONVERT_INTEGER(NAME, BITS, TYPE, WIDE)                               \
    HVD_KERNEL_FUNCTION BITS hvd_convert_##NAME(BITS bits, double factor,                \
                                                uint32_t divisor)                        \
    {                                                                                    \
        if (divisor <= 1) {                                                              \
            return (BITS)hvd_bits_##NAME(hvd_number_##NAME(bits) * factor);              \
        }                                                                                \
        if (factor == 1.0) {                                                             \
            return (BITS)((WIDE)(TYPE)bits / (WIDE)divisor);                             \
        }                                                                                \
        return (BITS)hvd_bits_##NAME(hvd_number_##NAME(bits) * factor /                  \
                                     (double)divisor);                                   \
    }

HVD_KERNEL_CONVERT_INTEGER(uint8, uint8_t, uint8_t, uint32_t)
HVD_KERNEL_CONVERT_INTEGER(int8, uint8_t, int8_t, int32_t)
HVD_KERNEL_CONVERT_INTEGER(int32, uint32_t, int32_t, int32_t)
HVD_KERNEL_CONVERT_INTEGER(int64, uint64_t, int64_t, int64_t)
HVD_KERNEL_CONVERT_INTEGER(uint32, uint32_t, uint32_t, uint32_t)
HVD_KERNEL_CONVERT_INTEGER(uint64, uint64_t, uint64_t, uint64_t)

/* Defines the conversion kernel hvd_kernel_NAME. If the addresses are aligned,
 * hvd_groups_NAME converts whole groups: as many elements as fill a vector of the smaller
 * type. */
#define HVD_KERNEL_CONVERTER(NAME, FROM, TO, NUMBER)                                     \
    HVD_KERNEL_FUNCTION void hvd_groups_##NAME(const struct hvd_kernel_tile *tile,       \
                                               uint32_t groups, NUMBER factor,           \
                                               uint32_t divisor, uint32_t thread)        \
    {                                                                                    \
        enum {                                                                           \
            LEAST = sizeof(FROM) < sizeof(TO) ? sizeof(FROM) : sizeof(TO),               \
            GROUP = HVD_KERNEL_VECTOR / LEAST,                                           \
            FROMS = GROUP * sizeof(FROM) / HVD_KERNEL_VECTOR,                            \
            TOS = GROUP * sizeof(TO) / HVD_KERNEL_VECTOR                                 \
        };                                                                               \
        union {                                                                          \
            hvd_vector vectors[FROMS];                                                   \
            FROM bits[GROUP];                                                            \
        } in;                                                                            \
        union {                                                                          \
            hvd_vector vectors[TOS];                                                     \
            TO bits[GROUP];                                                              \
        } out;                                                                           \
                                                                                         \
        for (uint32_t at = thread; at < groups; at += HVD_KERNEL_THREADS) {              \
            const char *from = tile->from + at * (GROUP * sizeof(FROM));                 \
            char *to = tile->to + at * (GROUP * sizeof(TO));                             \
                                                                                         \
            HVD_KERNEL_UNROLL                                                            \
            for (int i = 0; i < FROMS; i++) {                                            \
                in.vectors[i] = hvd_load_vector(from + i * HVD_KERNEL_VECTOR);           \
            }                                                                            \
            HVD_KERNEL_UNROLL                                                            \
            for (int i = 0; i < GROUP; i++) {                                            \
                out.bits[i] = hvd_convert_##NAME(in.bits[i], factor, divisor);           \
            }                                                                            \
            HVD_KERNEL_UNROLL                                                            \
            for (int i = 0; i < TOS; i++) {                                              \
                hvd_store_vector(to + i * HVD_KERNEL_VECTOR, out.vectors[i]);            \
            }                                                                            \
        }                                                                                \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_kernel_##NAME(const struct hvd_kernel_work *work,       \
                                               uint32_t block, uint32_t thread)          \
    {                                                                                    \
        const uint32_t least = sizeof(FROM) < sizeof(TO) ? sizeof(FROM) : sizeof(TO);    \
        const uint32_t group = HVD_KERNEL_VECTOR / least;                                \
        const NUMBER factor = (NUMBER)work->factor;                                      \
        const uint32_t divisor = work->divisor;                                          \
        struct hvd_kernel_tile tile =                                                    \
            hvd_kernel_tile(work, block, HVD_KERNEL_TILE, sizeof(FROM), sizeof(TO));     \
        uint32_t done = 0;                                                               \
                                                                                         \
        if (tile.from != NULL && hvd_kernel_offset(tile.from, HVD_KERNEL_VECTOR) == 0 && \
            hvd_kernel_offset(tile.to, HVD_KERNEL_VECTOR) == 0) {                        \
            hvd_groups_##NAME(&tile, tile.count / group, factor, divisor, thread);       \
            done = tile.count / group * group;                                           \
        }                                                                                \
        for (uint32_t at = done + thread; at < tile.count; at += HVD_KERNEL_THREADS) {   \
            char *to = tile.to + at * sizeof(TO);                                        \
            TO bits = 0;                                                                 \
                                                                                         \
            if (tile.from != NULL) {                                                     \
                bits = hvd_convert_##NAME(                                               \
                    (FROM)hvd_load_bits(tile.from + at * sizeof(FROM), sizeof(FROM)),    \
                    factor, divisor);                                                    \
            }                                                                            \
            hvd_store_bits(to, sizeof(TO), bits);                                        \
        }                                                                                \
    }

HVD_KERNEL_CONVERTER(uint8, uint8_t, uint8_t, double)
HVD_KERNEL_CONVERTER(int8, uint8_t, uint8_t, double)
HVD_KERNEL_CONVERTER(int32, uint32_t, uint32_t, double)
HVD_KERNEL_CONVERTER(int64, uint64_t, uint64_t, double)
HVD_KERNEL_CONVERTER(uint32, uint32_t, uint32_t, double)
HVD_KERNEL_CONVERTER(uint64, uint64_t, uint64_t, double)
HVD_KERNEL_CONVERTER(float16, uint16_t, uint16_t, float)
HVD_KERNEL_CONVERTER(bfloat16, uint16_t, uint16_t, float)
HVD_KERNEL_CONVERTER(float32, uint32_t, uint32_t, float)
HVD_KERNEL_CONVERTER(float64, uint64_t, uint64_t, double)
HVD_KERNEL_CONVERTER(float16_to_float32, uint16_t, uint32_t, float)
HVD_KERNEL_CONVERTER(float32_to_float16, uint32_t, uint16_t, float)
HVD_KERNEL_CONVERTER(bfloat16_to_float32, uint16_t, uint32_t, float)
HVD_KERNEL_CONVERTER(float32_to_bfloat16, uint32_t, uint16_t, float)
HVD_KERNEL_CONVERTER(float32_to_float64, uint32_t, uint64_t, double)
HVD_KERNEL_CONVERTER(float64_to_float32, uint64_t, uint32_t, double)

#endif
