/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what --check has found, as text or as one JSON object. */
#ifndef HVD_INFO_CHECK_REPORT_H
#define HVD_INFO_CHECK_REPORT_H

#include <stdio.h>

#include "contrib/info/check/judge.h"

/* Prints a line for each finding: "n2: red: shm: 1 MiB free, …". The level has its colour
 * if is_colored. */
void hvd_info_findings_print(const struct hvd_info_findings *findings, bool is_colored,
                             FILE *out);

/* Prints an object with fail_count and failed_checks, which counts red findings, then all
 * findings, and the facts by node. */
int hvd_info_findings_json(const struct hvd_info_nodes *nodes, const char *const *texts,
                           const struct hvd_info_findings *findings, FILE *out,
                           struct hvd_error *err);

/* Returns the number of findings of a level. */
int hvd_info_findings_count(const struct hvd_info_findings *findings,
                            enum hvd_info_level level);

#endif
