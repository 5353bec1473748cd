/* SPDX-License-Identifier: Apache-2.0 */
/* What mostly is behind an error of CUDA or NCCL, and what helps: half a sentence. Pure. */
#ifndef HVD_GPU_HINTS_H
#define HVD_GPU_HINTS_H

/* A CUresult; "" when there is nothing to say. */
const char *hvd_cuda_hint(int error);

/* A ncclResult_t, and what ncclGetLastError says, "" for nothing. Never "". */
const char *hvd_nccl_hint(int result, const char *last_error);

#endif
