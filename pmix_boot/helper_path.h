/* SPDX-License-Identifier: Apache-2.0 */
/* Where hvd-boot is. */
#ifndef HVD_HELPER_PATH_H
#define HVD_HELPER_PATH_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

/* HVD_ENV_BOOT_HELPER, else the place that belongs to the file this code was loaded from.
 * HVD_ERR_UNSUPPORTED, naming where it was looked for, when there is none: a build without
 * PMIx has none. */
int hvd_helper_path(char *path, size_t bytes, struct hvd_error *err);

#endif
