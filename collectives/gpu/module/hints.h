/* SPDX-License-Identifier: Apache-2.0 */
/* The usual cause of an error of CUDA or NCCL, and the remedy: half a sentence. Pure. */
#ifndef HVD_GPU_HINTS_H
#define HVD_GPU_HINTS_H

/* Of a CUresult; "": none. */
const char *hvd_cuda_hint(int error);

/* Of an ncclResult_t and the text of ncclGetLastError or "". Never "". */
const char *hvd_nccl_hint(int result, const char *last_error);

#endif
