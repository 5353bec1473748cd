/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the table of algorithms that a job uses. */
#ifndef HVD_ALGORITHM_FILE_H
#define HVD_ALGORITHM_FILE_H

#include "collectives/schedule/algorithm_table.h"

/* Reads the table from `path`, which the user named (HVD_ENV_TUNE_TABLE). NULL: from
 * hvd_algorithm_file_path, where an administrator may have put a table; the file need not
 * exist. *out is NULL if only the built-in table applies, as it does for the path
 * "builtin"; else the caller owns it. Fails as hvd_algorithm_table_parse does, or with
 * HVD_ERR_SYS if the file cannot be read. */
int hvd_algorithm_file_read(const char *path, struct hvd_algorithm_table **out,
                            struct hvd_error *err);

/* Returns the path of the administrator's table. */
const char *hvd_algorithm_file_path(void);

#endif
