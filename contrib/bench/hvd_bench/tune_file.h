/* SPDX-License-Identifier: Apache-2.0 */
/* The file that --tune writes. */
#ifndef HVD_BENCH_TUNE_FILE_H
#define HVD_BENCH_TUNE_FILE_H

#include <stdbool.h>

#include "collectives/schedule/algorithm_table.h"

/* Puts a section into a file, in place of the section for the same shapes, and keeps the
 * other lines. Creates the file if there is none; an old file stays until the new one is
 * complete. Returns HVD_ERR_ARG if the old file is not a table, or HVD_ERR_SYS. */
int bench_tune_file_write(const char *path, const struct hvd_algorithm_section *section,
                          struct hvd_error *err);

/* Whether the nodes have different numbers of ranks. If so, writes these numbers to text,
 * with the jobs to which a section measured here would apply, and the way to spread the
 * ranks evenly. */
bool bench_tune_is_uneven(const struct hvd_layout *layout, char *text, size_t room);

#endif
