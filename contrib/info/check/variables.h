/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check in a task of srun: which variables of the plugin have changed on the
 * way to this process. */
#ifndef HVD_INFO_VARIABLES_H
#define HVD_INFO_VARIABLES_H

#include <stdio.h>

#include "contrib/info/job.h"

/* Compares the environment with HVD_EXPORTED. Prints the names of all variables that have
 * been changed or removed, and what to do. Prints nothing if HVD_EXPORTED is unset. */
void hvd_info_variables_print(hvd_info_lookup lookup, FILE *out);

/* Prints the variables that choose UCX's transports, devices and protocols, as one fact:
 * "UCX settings: UCX_TLS=rc". */
void hvd_info_ucx_print(FILE *out);

#endif
