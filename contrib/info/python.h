/* SPDX-License-Identifier: Apache-2.0 */
/* Options of hvd-info that need a Python: which packages named horovod it finds, whether
 * a virtual environment finds hvd's, and the page of a timeline. */
#ifndef HVD_INFO_PYTHON_H
#define HVD_INFO_PYTHON_H

#include "gpu_binding/base/error.h"

/* Replaces this process by a Python that lists the packages named horovod on its
 * sys.path. python: the interpreter; NULL: python in PATH, else python3. Returns only on
 * failure. */
int hvd_info_python(const char *python, struct hvd_error *err);

/* The same for the Python in PATH, which also lists the frameworks that it has, and their
 * versions. */
int hvd_info_python_report(struct hvd_error *err);

/* Replaces this process by the Python of the virtual environment `venv`, which makes the
 * environment find hvd's package by a .pth file, or removes this file. Returns only on
 * failure. */
int hvd_info_into_venv(const char *venv, struct hvd_error *err);
int hvd_info_out_of_venv(const char *venv, struct hvd_error *err);

/* Replaces this process by a Python that makes the page of a straggler report from a
 * timeline, as TIMELINE.html. Returns only on failure. */
int hvd_info_timeline(const char *timeline, struct hvd_error *err);

#endif
