/* SPDX-License-Identifier: Apache-2.0 */
/* --help and --check-build. */
#ifndef HVDRUN_HELP_H
#define HVDRUN_HELP_H

#include <stdio.h>

/* All options, from the table. */
void hvdrun_help_print(FILE *out);

/* The installed features, in horovodrun's format. Starts python3 to ask for its
 * modules. */
void hvdrun_build_print(FILE *out);

#endif
