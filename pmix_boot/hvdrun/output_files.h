/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a job on this machine will write. */
#ifndef HVDRUN_OUTPUT_FILES_H
#define HVDRUN_OUTPUT_FILES_H

#include "pmix_boot/hvdrun/options.h"

/* Whether they can be written, as far as can be told without making them. HVD_ERR_ARG names
 * the option. */
int hvdrun_output_files_check(const struct hvdrun_options *options,
                              struct hvd_error *err);

#endif
