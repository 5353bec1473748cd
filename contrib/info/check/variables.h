/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check: which variables of the plugin have changed on the way to this task of
 * srun, and which variables configure UCX. */
#ifndef HVD_INFO_VARIABLES_H
#define HVD_INFO_VARIABLES_H

#include <stdio.h>

#include "contrib/info/job.h"

/* Compares the environment with HVD_EXPORTED. Prints the names of all variables that have
 * been changed or removed, and what to do. Prints nothing if HVD_EXPORTED is unset. */
void hvd_info_variables_print(hvd_info_lookup lookup, FILE *out);

/* Prints all variables whose names begin with UCX_, as one fact: "UCX settings:
 * UCX_TLS=rc". Leaves out UCX_NET_DEVICES: it names the card next to each rank, so it
 * differs between healthy ranks. */
void hvd_info_ucx_print(FILE *out);

#endif
