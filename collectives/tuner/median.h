/* SPDX-License-Identifier: Apache-2.0 */
/* The middle of some values. */
#ifndef HVD_MEDIAN_H
#define HVD_MEDIAN_H

/* Sorts the values; count is at least 1. The mean of the two in the middle if count is even. */
double hvd_median(double *values, int count);

#endif
