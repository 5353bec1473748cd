/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --nccl: sums up the warnings of NCCL in the files of a job. */
#ifndef HVD_INFO_NCCL_H
#define HVD_INFO_NCCL_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

/* Reads the directory and prints the report to standard output. A directory without files
 * of NCCL is an error. */
int hvd_info_nccl(const char *directory, bool is_json, struct hvd_error *err);

#endif
