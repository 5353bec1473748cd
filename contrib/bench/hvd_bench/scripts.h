/* SPDX-License-Identifier: Apache-2.0 */
/* The Python scripts and modules of hvd-bench. Paths are relative to the program, so that
 * an installed tree can be moved. */
#ifndef HVD_BENCH_SCRIPTS_H
#define HVD_BENCH_SCRIPTS_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

/* Finds a file of this name: beside the program (in the build tree), or where it was
 * installed. Returns HVD_ERR_UNSUPPORTED if there is none. */
int bench_script_find(const char *name, char *path, size_t room, struct hvd_error *err);

/* Tells libhvd, which is linked into this program and so cannot look beside itself, the
 * paths of its helper and of hvd_ucx.so, unless the user has set their variables. */
void bench_script_set_parts(void);

/* Replaces this process by lab.py, with the arguments after --lab. Returns only on
 * failure, the exit status. */
int bench_lab(int argc, char **argv);

/* Checks that plots can be drawn. Returns HVD_ERR_UNSUPPORTED if not; plot.py has printed
 * why. */
int bench_plot_check(struct hvd_error *err);

/* Draws a JSON file as basename.png and .svg. Returns HVD_ERR_UNSUPPORTED on failure;
 * plot.py has printed why. */
int bench_plot(const char *json, const char *basename, struct hvd_error *err);

#endif
