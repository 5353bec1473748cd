/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --bug-report: one text with the facts that are needed to find a fault. It
 * contains no secrets. */
#ifndef HVD_INFO_REPORT_H
#define HVD_INFO_REPORT_H

#include "contrib/info/job.h"
#include "gpu_binding/base/error.h"

/* Writes the report to the file, and prints the file's name. NULL: hvd-bug-report.txt;
 * hvd-bug-report-2.txt and so on if that exists; "-": standard output. If a part fails or
 * exceeds its time limit, the report names it and goes on. In a job, rank 0 writes the
 * report, and the other ranks only take part in the check. */
int hvd_info_report(hvd_info_lookup lookup, const char *file, struct hvd_error *err);

#endif
