/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the reduction kernels with the host's reductions. */
#ifndef KERNEL_SUMS_H
#define KERNEL_SUMS_H

#include <stdbool.h>

#include "collectives/hvd.h"

/* Tests sums, products, minima and maxima of several random sources; prints any
 * difference. */
bool kernel_sums_are_right(enum hvd_dtype dtype);

#endif
