/* SPDX-License-Identifier: Apache-2.0 */
/* A random collective, as all ranks draw it alike. */
#ifndef HVD_TEST_SOAK_CALL_H
#define HVD_TEST_SOAK_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/attr.h"

enum {
    SOAK_RANKS = 16, /* in a job, at most */
    SOAK_TENSORS = 5, /* in a group, at most */
    SOAK_PERIOD = 251, /* elements after which the values of a tensor repeat */
};

struct soak_random {
    uint64_t state;
};

enum soak_kind {
    SOAK_ALLREDUCE,
    SOAK_ADASUM, /* of equal tensors, whose Adasum is each of them */
    SOAK_ALLGATHER,
    SOAK_BROADCAST,
    SOAK_ALLTOALL,
    SOAK_REDUCESCATTER,
    SOAK_BARRIER,
    SOAK_KINDS
};

/* What one rank, the culprit, does differently from the others. */
enum soak_fault {
    SOAK_NO_FAULT,
    SOAK_OTHER_DTYPE,
    SOAK_OTHER_SHAPE,
    SOAK_OTHER_OP,
    SOAK_OTHER_SCALE,
    SOAK_OTHER_ROOT,
    SOAK_OTHER_KIND,
    SOAK_JOINED, /* not possible for want of those who have joined */
    SOAK_FAULTS
};

struct soak_call {
    char name[40];
    enum soak_kind kind;
    enum hvd_dtype dtype;
    enum hvd_op op;
    double prescale;
    double postscale;
    int slot; /* of the process set */
    int tensors; /* more than 1: a group */
    /* of each; where ranks differ, what theirs are drawn from */
    int64_t rows[SOAK_TENSORS];
    int64_t row; /* elements in a row */
    int root; /* index in the set */
    uint32_t seed; /* of the values */
    unsigned joined; /* ranks that give nothing, one bit each */
    enum soak_fault fault;
    int culprit; /* index in the set */
};

struct soak_random soak_seeded(uint64_t seed, uint64_t stream);
uint32_t soak_pick(struct soak_random *random, uint32_t below);
bool soak_chance(struct soak_random *random, uint32_t one_in);

/* A call among count ranks in the given slot; the name is the caller's to give. large:
 * one in so many is of megabytes. */
struct soak_call soak_draw(struct soak_random *random, int slot, int count,
                           uint32_t large);

/* An allreduce of a few elements, at times of many, by all ranks. */
struct soak_call soak_draw_gradient(struct soak_random *random);

/* Lets a rank among count do something wrong, if that is possible with this call. */
void soak_draw_fault(struct soak_random *random, int count, struct soak_call *call);

/* The call as the culprit makes it. */
struct soak_call soak_spoilt(const struct soak_call *call, int count);

/* What the message of its failure begins with. */
const char *soak_fault_text(const struct soak_call *call);

/* Rows that a member has of a tensor; rows that alltoall takes from one to another. */
int64_t soak_rows(const struct soak_call *call, int tensor, int member);
int32_t soak_split(const struct soak_call *call, int from, int to);

/* The shape of a member's tensor is [rows, row]. */
void soak_fill(const struct soak_call *call, int tensor, int member, void *array,
               int64_t count);

/* What element `index` of a member's tensor is, and of its reduction over count
 * members. */
double soak_value(const struct soak_call *call, int tensor, int member, int64_t index);
double soak_reduced(const struct soak_call *call, int tensor, int count, int64_t index);

/* Whether array holds count elements from `begin` on of value(index), which repeats. */
typedef double soak_source(const struct soak_call *call, int tensor, int who,
                           int64_t index);
bool soak_holds(const struct soak_call *call, int tensor, soak_source *value, int who,
                const void *array, int64_t begin, int64_t count);

/* "allreduce w.3 (seed 7, float32, op 1, 2 tensors, 100 x 3)" */
const char *soak_describe(const struct soak_call *call);

#endif
