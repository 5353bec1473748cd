/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the inner loops that this CPU can run. */
#include "collectives/reduce/reduce_levels.h"

#include <stdatomic.h>
#include <stdbool.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

static const struct hvd_kernels *const tables[HVD_LEVEL_COUNT] = {
    [HVD_LEVEL_PORTABLE] = hvd_kernels_portable,
#if defined(__x86_64__)
    [HVD_LEVEL_AVX2] = hvd_kernels_avx2,
    [HVD_LEVEL_AVX512] = hvd_kernels_avx512,
#elif defined(__aarch64__)
    [HVD_LEVEL_NEON] = hvd_kernels_neon,
#endif
};

#ifdef __x86_64__

/* Reads cpuid, because clang's __builtin_cpu_supports does not know F16C. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

static enum hvd_kernel_level find_level(void)
{
    if (!__builtin_cpu_supports("avx2") || !has_f16c()) {
        return HVD_LEVEL_PORTABLE;
    }
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
        return HVD_LEVEL_AVX2;
    }
    return HVD_LEVEL_AVX512;
}

#else

static enum hvd_kernel_level find_level(void)
{
    return (enum hvd_kernel_level)(HVD_LEVEL_COUNT - 1);
}

#endif

/* Cached, because in a virtual machine cpuid costs more than a small reduction. Threads
 * that race here find the same value. */
enum hvd_kernel_level hvd_kernel_level(void)
{
    static _Atomic int found = -1;
    int level = atomic_load_explicit(&found, memory_order_relaxed);

    if (level < 0) {
        level = (int)find_level();
        atomic_store_explicit(&found, level, memory_order_relaxed);
    }
    return (enum hvd_kernel_level)level;
}

const char *hvd_kernel_level_name(enum hvd_kernel_level level)
{
    static const char *const names[HVD_LEVEL_COUNT] = {
        [HVD_LEVEL_PORTABLE] = "portable",
#if defined(__x86_64__)
        [HVD_LEVEL_AVX2] = "avx2",
        [HVD_LEVEL_AVX512] = "avx512",
#elif defined(__aarch64__)
        [HVD_LEVEL_NEON] = "neon",
#endif
    };

    return names[level];
}

const struct hvd_kernels *hvd_kernels_at(enum hvd_kernel_level level,
                                         enum hvd_dtype dtype)
{
    return level <= hvd_kernel_level() ? &tables[level][dtype] : NULL;
}

const struct hvd_kernels *hvd_kernels_of(enum hvd_dtype dtype)
{
    return &tables[hvd_kernel_level()][dtype];
}
