/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the table of algorithms that a job uses. */
#ifndef HVD_ALGORITHM_FILE_H
#define HVD_ALGORITHM_FILE_H

#include "collectives/schedule/algorithm_table.h"

/* Reads the file that the user named (HVD_ENV_TUNE_TABLE); NULL: the one that an admin
 * may have put in its place, which need not be there. *out is NULL where the built-in
 * table is all there is, which the word "builtin" instead of a name asks for; else the
 * caller's. Fails as parse does, or with HVD_ERR_SYS when the file cannot be read. */
int hvd_algorithm_file_read(const char *path, struct hvd_algorithm_table **out,
                            struct hvd_error *err);

/* Where an admin puts it. */
const char *hvd_algorithm_file_path(void);

#endif
