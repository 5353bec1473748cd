/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that adds up, against the host's sums of the same. */
#ifndef KERNEL_SUMS_H
#define KERNEL_SUMS_H

#include <stdbool.h>

#include "collectives/hvd.h"

/* Sums, products, least and greatest of several sources, by chance; what differs is
 * printed. */
bool kernel_sums_are_right(enum hvd_dtype dtype);

#endif
