/* SPDX-License-Identifier: Apache-2.0 */
/* The job's own temporary directory. */
#ifndef HVDRUN_DIRECTORY_H
#define HVDRUN_DIRECTORY_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

/* Makes a new directory, open to this user only, in TMPDIR or /tmp. */
int hvdrun_directory_make(char *path, size_t bytes, struct hvd_error *err);

/* Removes it with all that is in it; follows no links. */
void hvdrun_directory_remove(const char *path);

#endif
