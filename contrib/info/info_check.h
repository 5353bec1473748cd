/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check: how ranks would start here, and which libraries and paths GPU tensors
 * would use on this node. */
#ifndef HVD_INFO_CHECK_H
#define HVD_INFO_CHECK_H

#include "gpu_binding/base/error.h"
#include "contrib/info/info_job.h"

/* Prints libhvd's description of this node. Returns HVD_ERR_UNSUPPORTED if there is no
 * libhvd or if GPU tensors cannot be used here, and the error of hvd_init if hvd_init
 * would fail. Then the description has the details, and err is a short sentence. */
int hvd_info_check(hvd_info_lookup lookup, struct hvd_error *err);

#endif
