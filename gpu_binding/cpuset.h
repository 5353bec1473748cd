/* SPDX-License-Identifier: Apache-2.0 */
/* A set of cpus as a plain value of fixed size, copied by assignment. */
#ifndef HVD_CPUSET_H
#define HVD_CPUSET_H

#include <stdbool.h>
#include <stdint.h>

/* The most cpus a Linux kernel can be built for (x86, MAXSMP). */
#define HVD_CPUSET_SIZE 8192

/* Zeroed memory is the empty set. */
struct hvd_cpuset {
    uint64_t words[HVD_CPUSET_SIZE / 64];
};

/* Numbers outside 0 .. HVD_CPUSET_SIZE - 1 are not added, and are in no set. */
void hvd_cpuset_add(struct hvd_cpuset *set, int cpu);
bool hvd_cpuset_has(const struct hvd_cpuset *set, int cpu);

/* Change set to its intersection (keep) or union (join) with other. */
void hvd_cpuset_keep(struct hvd_cpuset *set, const struct hvd_cpuset *other);
void hvd_cpuset_join(struct hvd_cpuset *set, const struct hvd_cpuset *other);

int hvd_cpuset_count(const struct hvd_cpuset *set);
bool hvd_cpuset_is_empty(const struct hvd_cpuset *set);
bool hvd_cpuset_is_equal(const struct hvd_cpuset *a, const struct hvd_cpuset *b);
bool hvd_cpuset_overlaps(const struct hvd_cpuset *a, const struct hvd_cpuset *b);

/* True when every cpu of inner is in outer. */
bool hvd_cpuset_is_within(const struct hvd_cpuset *inner, const struct hvd_cpuset *outer);

/* Returns the lowest cpu above `after` (-1 to start), or -1 if there is none. */
int hvd_cpuset_next(const struct hvd_cpuset *set, int after);

#endif
