/* SPDX-License-Identifier: Apache-2.0 */
/* The file that --tune writes. */
#ifndef HVD_BENCH_TUNE_FILE_H
#define HVD_BENCH_TUNE_FILE_H

#include <stdbool.h>

#include "collectives/schedule/algorithm_table.h"

/* Puts a section into a file, in the place of the one that is for the same shapes, and
 * leaves the other lines as they are. Makes the file if there is none; the old one stays
 * until the new one is complete. HVD_ERR_ARG when the old one is no table,
 * HVD_ERR_SYS. */
int bench_tune_file_write(const char *path, const struct hvd_algorithm_section *section,
                          struct hvd_error *err);

/* Whether the nodes have different numbers of ranks; text gets which, which jobs a
 * section that is measured there is for, and how to spread the ranks evenly. */
bool bench_tune_is_uneven(const struct hvd_layout *layout, char *text, size_t room);

#endif
