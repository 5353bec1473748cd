// SPDX-License-Identifier: Apache-2.0
// The kernels as the driver finds them: hvd_copy, and hvd_NAME of each of HVD_KERNEL_LIST and of
// HVD_KERNEL_SUM_LIST, and hvd_poison.
#include "collectives/gpu/module/kernel_body.h"
#include "collectives/gpu/module/kernel_poison.h"
#include "collectives/gpu/module/kernel_sum.h"

// The parameters stay where the launch has put them, instead of in each thread's own memory.
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1107
#define HVD_PARAMETER
#else
#define HVD_PARAMETER __grid_constant__
#endif

#define HVD_ENTRY(NAME, FROM, TO)                                                        \
    extern "C" __global__ void __launch_bounds__(HVD_KERNEL_THREADS)                     \
        hvd_##NAME(const HVD_PARAMETER struct hvd_kernel_work work)                      \
    {                                                                                    \
        hvd_kernel_##NAME(&work, blockIdx.x, threadIdx.x);                               \
    }

HVD_ENTRY(copy, , )
HVD_KERNEL_LIST(HVD_ENTRY)

// With four blocks at a time, a quarter of a multiprocessor's registers is enough for each: left to itself, ptxas
// of CUDA 13 spills one to memory on sm_100 to have eight.
#define HVD_SUM_ENTRY(NAME, TYPE)                                                        \
    extern "C" __global__ void __launch_bounds__(HVD_KERNEL_THREADS, 4)                  \
        hvd_##NAME(const HVD_PARAMETER struct hvd_kernel_sum sum)                        \
    {                                                                                    \
        hvd_kernel_##NAME(&sum, blockIdx.x, threadIdx.x);                                \
    }

HVD_KERNEL_SUM_LIST(HVD_SUM_ENTRY)

extern "C" __global__ void __launch_bounds__(HVD_KERNEL_POISON_THREADS)
    hvd_poison(const HVD_PARAMETER struct hvd_kernel_poison poison)
{
    hvd_kernel_poison(&poison, blockIdx.x, threadIdx.x);
}
