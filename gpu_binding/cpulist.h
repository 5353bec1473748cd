/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of cpus as text in the notation of taskset: "0-3,8", and "0-18:2" for every
 * second. */
#ifndef HVD_CPULIST_H
#define HVD_CPULIST_H

#include <stddef.h>

#include "gpu_binding/cpuset.h"

struct hvd_error;

/* Reads the whole text or nothing: a list of N, N-M or N-M:STRIDE joined by commas,
 * without blanks. Empty text, N > M, a stride of 0 and numbers too large are
 * HVD_ERR_ARG. */
int hvd_cpulist_parse(const char *text, struct hvd_cpuset *set, struct hvd_error *err);

/* Writes the set as ascending ranges and strides, as short as possible; "-" for the empty
 * set. Like snprintf, it writes at most size bytes with the terminating zero, and returns
 * the length of the whole text. */
size_t hvd_cpulist_format(const struct hvd_cpuset *set, char *text, size_t size);

#endif
