/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver and an NCCL that are too old for hvd: they lack most of the functions
 * that hvd calls. */
#include "gpu_binding/base/attr.h"

HVD_EXPORT int cuDriverGetVersion(int *version);
HVD_EXPORT int ncclGetVersion(int *version);

HVD_EXPORT int cuDriverGetVersion(int *version)
{
    *version = 10020;
    return 0;
}

HVD_EXPORT int ncclGetVersion(int *version)
{
    *version = 2604;
    return 0;
}
