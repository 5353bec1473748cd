/* SPDX-License-Identifier: Apache-2.0 */
/* --help and --check-build. */
#ifndef HVDRUN_HELP_H
#define HVDRUN_HELP_H

#include <stdio.h>

/* Prints all options of the table. */
void hvdrun_help_print(FILE *out);

/* Prints the installed features in horovodrun's format, and the Python to which they
 * belong: the first in PATH that is called python, else python3. Runs it to look for
 * modules. */
void hvdrun_build_print(FILE *out);

#endif
