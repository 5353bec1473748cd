/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that runs behind collectives, hvd_poison: overwrites their results with NaN
 * if they have been aborted; otherwise it reads one word of host memory and ends.
 * Compiled by nvcc for GPUs, and as C for the stand-in for a GPU in the tests. */
#ifndef HVD_KERNEL_POISON_H
#define HVD_KERNEL_POISON_H

#include "collectives/gpu/module/kernel_memory.h"
#include "collectives/gpu/module/kernel_work.h"

/* Each block handles one result. A block is a single warp, the smallest possible
 * launch. */
HVD_KERNEL_FUNCTION void hvd_kernel_poison(const struct hvd_kernel_poison *poison,
                                           uint32_t block, uint32_t thread)
{
    int64_t count = *poison->aborted != 0 ? poison->counts[block] : 0;

    for (int64_t at = thread; at < count; at += HVD_KERNEL_POISON_THREADS) {
        hvd_store_bits(poison->to[block] + at * poison->size, poison->size, poison->nan);
    }
}

#endif
