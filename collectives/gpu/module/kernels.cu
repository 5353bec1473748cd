// SPDX-License-Identifier: Apache-2.0
/* The entry points of the kernels: hvd_copy, hvd_poison, and hvd_NAME for each kernel of
 * HVD_KERNEL_LIST, HVD_KERNEL_SUM_LIST and HVD_KERNEL_PUSH_LIST. */
#include "collectives/gpu/module/kernel_body.h"
#include "collectives/gpu/module/kernel_poison.h"
#include "collectives/gpu/module/kernel_push.h"
#include "collectives/gpu/module/kernel_sum.h"

/* Keeps the parameters in constant memory, not in each thread's local memory. */
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

/* At least four blocks per multiprocessor, so that each may use a quarter of its
 * registers. Without this, ptxas of CUDA 13 aims for eight blocks on sm_100 and spills a
 * register. */
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

/* Each rank's flag has a thread that waits for it. */
static __device__ bool wait_for_ranks(const struct hvd_kernel_push *push)
{
    enum hvd_push_state state;
    unsigned turn = 1;

    do {
        state = hvd_push_look(push, blockIdx.x, threadIdx.x, turn++);
    } while (state == HVD_PUSH_PENDING);
    return __syncthreads_or(state == HVD_PUSH_ABORTED) == 0;
}

#define HVD_PUSH_ENTRY(NAME, TENSOR, SLOT)                                               \
    extern "C" __global__ void __launch_bounds__(HVD_KERNEL_THREADS)                     \
        hvd_##NAME(const HVD_PARAMETER struct hvd_kernel_push push)                      \
    {                                                                                    \
        hvd_pack_##NAME(&push, blockIdx.x, threadIdx.x);                                 \
        __syncthreads();                                                                 \
        hvd_push_tell(&push, blockIdx.x, threadIdx.x);                                   \
        hvd_finish_##NAME(&push, blockIdx.x, threadIdx.x, !wait_for_ranks(&push));       \
    }

HVD_KERNEL_PUSH_LIST(HVD_PUSH_ENTRY)
