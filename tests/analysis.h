/* SPDX-License-Identifier: Apache-2.0 */
/* Included first by tests/analysis.py: its tools look at one file at a time, and see so
 * that what hvd_fail returns is its status. */
#ifndef HVD_TEST_ANALYSIS_H
#define HVD_TEST_ANALYSIS_H

#include "gpu_binding/base/error.h"

#define hvd_fail(err, status, ...) ((void)hvd_fail(err, status, __VA_ARGS__), (status))

#endif
