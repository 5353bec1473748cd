/* SPDX-License-Identifier: Apache-2.0 */
/* Which inner loops this CPU can run. */
#include "collectives/reduce/reduce_levels.h"

static const struct hvd_kernels *const tables[HVD_LEVEL_COUNT] = {
    [HVD_LEVEL_PORTABLE] = hvd_kernels_portable,
};

enum hvd_kernel_level hvd_kernel_level(void)
{
    return HVD_LEVEL_PORTABLE;
}

const char *hvd_kernel_level_name(enum hvd_kernel_level level)
{
    static const char *const names[HVD_LEVEL_COUNT] = {
        [HVD_LEVEL_PORTABLE] = "portable",
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
    return hvd_kernels_at(hvd_kernel_level(), dtype);
}
