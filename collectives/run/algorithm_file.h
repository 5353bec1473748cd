/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the table of algorithms that a job uses. */
#ifndef HVD_ALGORITHM_FILE_H
#define HVD_ALGORITHM_FILE_H

#include "collectives/schedule/algorithm_table.h"

/* Reads the table from `path`, which the user named (HVD_ENV_TUNE_TABLE). If path is
 * NULL, reads the administrator's table at hvd_algorithm_file_path, which need not exist.
 * *out is NULL if only the built-in table applies: for the path "builtin", or without a
 * file of the administrator. Else the caller owns *out. Fails like
 * hvd_algorithm_table_parse, or with HVD_ERR_SYS if the file cannot be read. */
int hvd_algorithm_file_read(const char *path, struct hvd_algorithm_table **out,
                            struct hvd_error *err);

/* Returns the path at which an administrator may install a table. */
const char *hvd_algorithm_file_path(void);

#endif
