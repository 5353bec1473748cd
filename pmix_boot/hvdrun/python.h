/* SPDX-License-Identifier: Apache-2.0 */
/* Where the Python front end is. */
#ifndef HVDRUN_PYTHON_H
#define HVDRUN_PYTHON_H

#include <stddef.h>

/* The directory that holds the package "horovod", found from the place of this program so
 * that an installed tree can be moved; empty when there is none. */
void hvdrun_python_directory(char *path, size_t bytes);

#endif
