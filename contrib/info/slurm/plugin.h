/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out for which release of Slurm a plugin was built, without loading it. */
#ifndef HVD_INFO_PLUGIN_H
#define HVD_INFO_PLUGIN_H

#include "gpu_binding/base/error.h"

/* Writes the release: 2205 for 22.05.8, because Slurm compares only these two numbers.
 *
 *   HVD_ERR_SYS           the file cannot be read
 *   HVD_ERR_UNSUPPORTED   it is not a plugin of Slurm for this kind of machine */
int hvd_info_plugin_release(const char *file, int *release, struct hvd_error *err);

#endif
