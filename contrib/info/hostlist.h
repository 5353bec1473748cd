/* SPDX-License-Identifier: Apache-2.0 */
/* Prints names of nodes as Slurm does: n[1-4,7]. */
#ifndef HVD_INFO_HOSTLIST_H
#define HVD_INFO_HOSTLIST_H

#include <stdio.h>

/* Compares two names of nodes, as qsort does for an array of names: n2 precedes n10. */
int hvd_info_hostlist_compare(const void *left, const void *right);

/* Prints the names, which are all different and sorted by hvd_info_hostlist_compare.
 * Names that differ only in the last number before the domain are folded, as in
 * n[1-2].site,login. */
void hvd_info_hostlist_print(const char *const *names, int count, FILE *out);

#endif
