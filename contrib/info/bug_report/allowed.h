/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables hvd-info --bug-report shows. */
#ifndef HVD_INFO_ALLOWED_H
#define HVD_INFO_ALLOWED_H

#include <stdbool.h>

/* Returns whether the value of the variable may be shown because it is never a secret. */
bool hvd_info_is_allowed(const char *name);

/* Returns whether the variable belongs to hvd, Horovod, NCCL, UCX or Slurm. The report
 * has the names of all of these, and the values of those that are allowed. */
bool hvd_info_is_of_family(const char *name);

#endif
