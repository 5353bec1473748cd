/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check: how ranks would start here, and what GPU tensors would use on this
 * node. */
#ifndef HVD_INFO_CHECK_H
#define HVD_INFO_CHECK_H

#include "gpu_binding/base/error.h"

/* Prints what libhvd says. HVD_ERR_UNSUPPORTED when there is no libhvd, or GPU tensors
 * cannot be used here; what hvd_init would fail with, when it would. That has been
 * printed, too, and err says so in short. */
int hvd_info_check(struct hvd_error *err);

#endif
