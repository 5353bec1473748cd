/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to hvd-bench and is not in the program: modules and Python scripts. */
#ifndef HVD_BENCH_FILES_H
#define HVD_BENCH_FILES_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

/* The path of a file of this name, beside the program (in the build tree) or where it was
 * installed. HVD_ERR_UNSUPPORTED when there is none. */
int bench_file_find(const char *name, char *path, size_t room, struct hvd_error *err);

/* Tells libhvd, which is part of this program, where its helper lies, unless the user has. */
void bench_file_set_helper(void);

#endif
