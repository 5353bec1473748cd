/* SPDX-License-Identifier: Apache-2.0 */
/* Memory accesses of the kernels, compiled by nvcc for GPUs, and as C for the stand-in
 * for a GPU in the tests.
 *
 * A misaligned access is an error on a GPU, so the stand-in aborts the process. It
 * accesses memory by memcpy, which C allows for any type. */
#ifndef HVD_KERNEL_MEMORY_H
#define HVD_KERNEL_MEMORY_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HVD_KERNEL_FUNCTION static __device__ __forceinline__
#define HVD_KERNEL_UNROLL _Pragma("unroll")
typedef uint4 hvd_vector;
#else
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#define HVD_KERNEL_FUNCTION static inline
#define HVD_KERNEL_UNROLL
typedef struct {
    uint32_t x, y, z, w;
} hvd_vector;
#endif

enum {
    HVD_KERNEL_VECTOR = 16, /* bytes */
};

/* Returns how far the address is above a multiple of `bytes`, a power of two. */
HVD_KERNEL_FUNCTION uint32_t hvd_kernel_offset(const void *at, uint32_t bytes)
{
    return (uint32_t)(uintptr_t)at & (bytes - 1);
}

/* Defines hvd_load_NAME and hvd_store_NAME; the address must be aligned for TYPE. */
#ifdef __CUDACC__
#define HVD_KERNEL_ACCESS(NAME, TYPE)                                                    \
    HVD_KERNEL_FUNCTION TYPE hvd_load_##NAME(const char *at)                             \
    {                                                                                    \
        return *(const TYPE *)at;                                                        \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_store_##NAME(char *at, TYPE value)                      \
    {                                                                                    \
        *(TYPE *)at = value;                                                             \
    }
#else
#define HVD_KERNEL_ACCESS(NAME, TYPE)                                                    \
    HVD_KERNEL_FUNCTION TYPE hvd_load_##NAME(const char *at)                             \
    {                                                                                    \
        TYPE value;                                                                      \
                                                                                         \
        if (hvd_kernel_offset(at, sizeof(value)) != 0) {                                 \
            abort();                                                                     \
        }                                                                                \
        memcpy(&value, at, sizeof(value));                                               \
        return value;                                                                    \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_store_##NAME(char *at, TYPE value)                      \
    {                                                                                    \
        if (hvd_kernel_offset(at, sizeof(value)) != 0) {                                 \
            abort();                                                                     \
        }                                                                                \
        memcpy(at, &value, sizeof(value));                                               \
    }
#endif

HVD_KERNEL_ACCESS(vector, hvd_vector)
HVD_KERNEL_ACCESS(uint8, uint8_t)
HVD_KERNEL_ACCESS(uint16, uint16_t)
HVD_KERNEL_ACCESS(uint32, uint32_t)
HVD_KERNEL_ACCESS(uint64, uint64_t)

/* Flags in memory that several GPUs access. A thread that loads a flag's new value also
 * sees all that was stored before the flag: on GPUs, also by other threads before a
 * barrier with the thread that stored the flag. */
#ifdef __CUDACC__
HVD_KERNEL_FUNCTION void hvd_store_flag(char *at, uint64_t value)
{
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

HVD_KERNEL_FUNCTION uint64_t hvd_load_flag(const char *at)
{
    uint64_t value;

    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
#else
HVD_KERNEL_FUNCTION void hvd_store_flag(char *at, uint64_t value)
{
    atomic_store_explicit((_Atomic uint64_t *)(void *)at, value, memory_order_release);
}

HVD_KERNEL_FUNCTION uint64_t hvd_load_flag(const char *at)
{
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)at,
                                memory_order_acquire);
}
#endif

/* Loads up to 8 bytes from any address. */
HVD_KERNEL_FUNCTION uint64_t hvd_load_any(const char *at, uint32_t size)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < size; i++) {
        bits |= (uint64_t)hvd_load_uint8(at + i) << (8 * i);
    }
    return bits;
}

HVD_KERNEL_FUNCTION void hvd_store_any(char *at, uint32_t size, uint64_t bits)
{
    for (uint32_t i = 0; i < size; i++) {
        hvd_store_uint8(at + i, (uint8_t)(bits >> (8 * i)));
    }
}

/* Loads 1, 2, 4 or 8 bytes from any address, at once if it is aligned. */
HVD_KERNEL_FUNCTION uint64_t hvd_load_bits(const char *at, uint32_t size)
{
    if (hvd_kernel_offset(at, size) != 0) {
        return hvd_load_any(at, size);
    }
    return size == 1   ? hvd_load_uint8(at)
           : size == 2 ? hvd_load_uint16(at)
           : size == 4 ? hvd_load_uint32(at)
                       : hvd_load_uint64(at);
}

HVD_KERNEL_FUNCTION void hvd_store_bits(char *at, uint32_t size, uint64_t bits)
{
    if (hvd_kernel_offset(at, size) != 0) {
        hvd_store_any(at, size, bits);
    } else if (size == 1) {
        hvd_store_uint8(at, (uint8_t)bits);
    } else if (size == 2) {
        hvd_store_uint16(at, (uint16_t)bits);
    } else if (size == 4) {
        hvd_store_uint32(at, (uint32_t)bits);
    } else {
        hvd_store_uint64(at, bits);
    }
}

#endif
