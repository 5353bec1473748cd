/* SPDX-License-Identifier: Apache-2.0 */
/* The median, which benchmarks print as the result of many turns. */
#ifndef HVD_BENCH_MEDIAN_H
#define HVD_BENCH_MEDIAN_H

/* Returns the median of count > 0 values, which it sorts. */
double median(double *values, int count);

#endif
