/* SPDX-License-Identifier: Apache-2.0 */
/* --lab: hands over to lab.py, which starts the jobs. */
#ifndef HVD_BENCH_LAB_H
#define HVD_BENCH_LAB_H

#include <stdbool.h>

/* Whether the command line begins with --lab. */
bool bench_is_lab(int argc, char **argv);

/* Becomes lab.py with the rest of the command line. Returns only when it cannot: the exit
 * status. */
int bench_lab(int argc, char **argv);

#endif
