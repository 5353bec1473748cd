/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the files that the options name, before anything is measured. */
#ifndef HVD_BENCH_OUTPUTS_H
#define HVD_BENCH_OUTPUTS_H

#include "contrib/bench/hvd_bench/options.h"

/* Checks that the files of --json, --plot and --tune can be written, as far as possible
 * without creating them, and that the old file of --tune is a table. On failure returns
 * HVD_ERR_ARG with a text that names the option. */
int bench_outputs_check(const struct bench_options *options, struct hvd_error *err);

#endif
