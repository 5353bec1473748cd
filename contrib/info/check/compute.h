/* SPDX-License-Identifier: Apache-2.0 */
/* A short computation, which shows whether the core of this rank is slow. */
#ifndef HVD_INFO_COMPUTE_H
#define HVD_INFO_COMPUTE_H

/* Measures one core for at most budget_s seconds, and writes the fastest of many short
 * bursts, which other processes disturb little. */
void hvd_info_compute(double budget_s, double *values);

#endif
