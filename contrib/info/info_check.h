/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check: what GPU tensors would use on this node. */
#ifndef HVD_INFO_CHECK_H
#define HVD_INFO_CHECK_H

#include "gpu_binding/base/error.h"

/* Prints what libhvd says. HVD_ERR_UNSUPPORTED when there is no libhvd, or GPU tensors cannot be
 * used here; that has been printed, too, and err says so in short. */
int hvd_info_check(struct hvd_error *err);

#endif
