/* SPDX-License-Identifier: Apache-2.0 */
/* The usual cause of an error of CUDA or NCCL, and the remedy, as a clause for the end of
 * an error message. Pure. */
#ifndef HVD_GPU_HINTS_H
#define HVD_GPU_HINTS_H

/* Returns the hint for a CUresult, "" if there is none. */
const char *hvd_cuda_hint(int error);

/* Returns the hint for an ncclResult_t; last_error is the text of ncclGetLastError, or
 * "". Never returns "". */
const char *hvd_nccl_hint(int result, const char *last_error);

#endif
