/* SPDX-License-Identifier: Apache-2.0 */
/* What PMIx tells the ranks of a one-node job about themselves and each other. */
#ifndef HVDRUN_JOB_INFO_H
#define HVDRUN_JOB_INFO_H

#include <pmix_server.h>

#include "pmix_boot/hvdrun/server.h"

/* *info is the caller's, to end with PMIX_INFO_FREE(*info, *count). */
int hvdrun_job_info_make(const struct hvdrun_job *job, const char *name_space,
                         pmix_info_t **info, size_t *count, struct hvd_error *err);

#endif
