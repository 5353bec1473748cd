/* SPDX-License-Identifier: Apache-2.0 */
/* A set of cpus as a plain value. */
#include "gpu_binding/cpuset.h"

#define WORDS (HVD_CPUSET_SIZE / 64)

static uint64_t bit_of(int cpu)
{
    return (uint64_t)1 << (cpu % 64);
}

void hvd_cpuset_add(struct hvd_cpuset *set, int cpu)
{
    if (cpu >= 0 && cpu < HVD_CPUSET_SIZE) {
        set->words[cpu / 64] |= bit_of(cpu);
    }
}

bool hvd_cpuset_has(const struct hvd_cpuset *set, int cpu)
{
    return cpu >= 0 && cpu < HVD_CPUSET_SIZE && (set->words[cpu / 64] & bit_of(cpu)) != 0;
}

void hvd_cpuset_keep(struct hvd_cpuset *set, const struct hvd_cpuset *other)
{
    for (int i = 0; i < WORDS; i++) {
        set->words[i] &= other->words[i];
    }
}

void hvd_cpuset_join(struct hvd_cpuset *set, const struct hvd_cpuset *other)
{
    for (int i = 0; i < WORDS; i++) {
        set->words[i] |= other->words[i];
    }
}

int hvd_cpuset_count(const struct hvd_cpuset *set)
{
    int count = 0;

    for (int cpu = -1; (cpu = hvd_cpuset_next(set, cpu)) >= 0;) {
        count++;
    }
    return count;
}

bool hvd_cpuset_is_empty(const struct hvd_cpuset *set)
{
    return hvd_cpuset_next(set, -1) < 0;
}

bool hvd_cpuset_is_equal(const struct hvd_cpuset *a, const struct hvd_cpuset *b)
{
    return hvd_cpuset_is_within(a, b) && hvd_cpuset_is_within(b, a);
}

bool hvd_cpuset_overlaps(const struct hvd_cpuset *a, const struct hvd_cpuset *b)
{
    for (int i = 0; i < WORDS; i++) {
        if ((a->words[i] & b->words[i]) != 0) {
            return true;
        }
    }
    return false;
}

bool hvd_cpuset_is_within(const struct hvd_cpuset *inner, const struct hvd_cpuset *outer)
{
    for (int i = 0; i < WORDS; i++) {
        if ((inner->words[i] & ~outer->words[i]) != 0) {
            return false;
        }
    }
    return true;
}

int hvd_cpuset_next(const struct hvd_cpuset *set, int after)
{
    for (int cpu = after + 1; cpu < HVD_CPUSET_SIZE;) {
        uint64_t rest = set->words[cpu / 64] >> (cpu % 64);

        if (rest == 0) {
            cpu = (cpu / 64 + 1) * 64;
            continue;
        }
        while ((rest & 1) == 0) {
            rest >>= 1;
            cpu++;
        }
        return cpu;
    }
    return -1;
}
