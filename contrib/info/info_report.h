/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --bug-report: one text with what a reader of a report about a fault asks for.
 * It shows no secrets. */
#ifndef HVD_INFO_REPORT_H
#define HVD_INFO_REPORT_H

#include "contrib/info/info_job.h"
#include "gpu_binding/base/error.h"

/* Writes the report to the file, or to standard output for "-", and says so; NULL: to
 * hvd-bug-report.txt. A part that fails, or takes longer than its time limit, is named
 * and left out. In a task of a job, rank 0 writes it, and the other ranks only take part
 * in the check. */
int hvd_info_report(hvd_info_lookup lookup, const char *file, struct hvd_error *err);

#endif
