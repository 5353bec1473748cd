/* SPDX-License-Identifier: Apache-2.0 */
/* Advice on the best-known warnings of NCCL. Pure. */
#ifndef HVD_INFO_NCCL_ADVICE_H
#define HVD_INFO_NCCL_ADVICE_H

/* Returns a sentence about the warning, or NULL if it is not known. */
const char *hvd_info_nccl_advice(const char *text);

#endif
