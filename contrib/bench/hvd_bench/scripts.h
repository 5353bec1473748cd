/* SPDX-License-Identifier: Apache-2.0 */
/* The Python scripts and the modules that belong to hvd-bench. Files are found from the
 * place of the program, so that an installed tree can be moved. */
#ifndef HVD_BENCH_SCRIPTS_H
#define HVD_BENCH_SCRIPTS_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

/* The path of a file of this name, beside the program (in the build tree) or where it was
 * installed. HVD_ERR_UNSUPPORTED if there is none. */
int bench_script_find(const char *name, char *path, size_t room, struct hvd_error *err);

/* Tells libhvd, which is linked into this program, where its helper is; HVD_BOOT_HELPER
 * of the user wins. */
void bench_script_set_helper(void);

/* Becomes lab.py with the words of argv behind --lab. Returns only on failure: the exit
 * status. */
int bench_lab(int argc, char **argv);

/* HVD_ERR_UNSUPPORTED if nothing can be drawn here; plot.py has printed why. */
int bench_plot_check(struct hvd_error *err);

/* Draws a JSON file as basename.png and .svg. HVD_ERR_UNSUPPORTED on failure; plot.py has
 * printed why. */
int bench_plot(const char *json, const char *basename, struct hvd_error *err);

#endif
