/* SPDX-License-Identifier: Apache-2.0 */
/* Reads sizes, limits and network interfaces of this node from the kernel. */
#ifndef HVD_INFO_NODE_H
#define HVD_INFO_NODE_H

#include <stdio.h>

#include "contrib/info/job.h"

/* Writes the numbers of values.h that need no measurement, and prints the facts that a
 * node may not share with others. */
void hvd_info_node_read(hvd_info_lookup lookup, double *values, FILE *out);

/* Returns the frequency of the cpu on which this thread runs in percent of its highest
 * one, or NAN where the kernel does not show it. */
double hvd_info_node_clock(void);

#endif
