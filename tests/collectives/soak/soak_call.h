/* SPDX-License-Identifier: Apache-2.0 */
/* Random collectives, with values that every rank can compute. */
#ifndef HVD_TEST_SOAK_CALL_H
#define HVD_TEST_SOAK_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/attr.h"

enum {
    SOAK_RANKS = 16, /* most ranks of a job */
    SOAK_TENSORS = 5, /* most tensors of a group */
    SOAK_PERIOD = 251, /* number of elements after which the values of a tensor repeat */
};

struct soak_random {
    uint64_t state;
};

enum soak_kind {
    SOAK_ALLREDUCE,
    SOAK_ADASUM, /* Adasum of equal tensors, so that the result is that tensor */
    SOAK_ALLGATHER,
    SOAK_BROADCAST,
    SOAK_ALLTOALL,
    SOAK_REDUCESCATTER,
    SOAK_BARRIER,
    SOAK_KINDS
};

/* The mistake that one rank, the culprit, makes. */
enum soak_fault {
    SOAK_NO_FAULT,
    SOAK_OTHER_DTYPE,
    SOAK_OTHER_SHAPE,
    SOAK_OTHER_OP,
    SOAK_OTHER_SCALE,
    SOAK_OTHER_ROOT,
    SOAK_OTHER_KIND,
    SOAK_JOINED, /* no mistake: the call is impossible because ranks have joined */
    SOAK_FAULTS
};

struct soak_call {
    char name[40];
    enum soak_kind kind;
    enum hvd_dtype dtype;
    enum hvd_op op;
    double prescale;
    double postscale;
    int slot; /* position of the process set in soak->sets */
    int tensors; /* number of tensors; more than 1: the call is of a group */
    /* rows of each tensor; for kinds in which ranks have different numbers of rows, each
     * has at most half of this */
    int64_t rows[SOAK_TENSORS];
    int64_t row; /* number of elements in a row */
    int root; /* number of the root in the set */
    uint32_t seed; /* seed of the tensors' values */
    unsigned joined; /* ranks that have joined, one bit each */
    enum soak_fault fault;
    int culprit; /* number of the culprit in the set */
};

struct soak_random soak_seeded(uint64_t seed, uint64_t stream);
uint32_t soak_pick(struct soak_random *random, uint32_t below);
bool soak_chance(struct soak_random *random, uint32_t one_in);

/* Draws a call among the `count` ranks of the set at position `slot`; the caller sets the
 * name. One in `large` calls has megabytes. */
struct soak_call soak_draw(struct soak_random *random, int slot, int count,
                           uint32_t large);

/* Draws an allreduce by all ranks; it has few elements, sometimes many. */
struct soak_call soak_draw_gradient(struct soak_random *random);

/* Makes one of `count` ranks the culprit of a random mistake, if the call allows it. */
void soak_draw_fault(struct soak_random *random, int count, struct soak_call *call);

/* Returns the call as the culprit makes it. */
struct soak_call soak_spoilt(const struct soak_call *call, int count);

/* Returns the beginning of the expected error text. */
const char *soak_fault_text(const struct soak_call *call);

/* Return the rows of a member's tensor, and the rows that an alltoall moves from one
 * member to another. */
int64_t soak_rows(const struct soak_call *call, int tensor, int member);
int32_t soak_split(const struct soak_call *call, int from, int to);

/* Fills a member's tensor of the shape [rows, row]. */
void soak_fill(const struct soak_call *call, int tensor, int member, void *array,
               int64_t count);

/* Return element `index` of a member's tensor, and of the reduction over `count`
 * members. */
double soak_value(const struct soak_call *call, int tensor, int member, int64_t index);
double soak_reduced(const struct soak_call *call, int tensor, int count, int64_t index);

/* Whether array holds the `count` elements of a tensor from index `begin` on, each of
 * which has the value that value() returns for its index. */
typedef double soak_source(const struct soak_call *call, int tensor, int who,
                           int64_t index);
bool soak_holds(const struct soak_call *call, int tensor, soak_source *value, int who,
                const void *array, int64_t begin, int64_t count);

/* Returns a description, such as "allreduce w.3 (seed 7, float32, op 1, 2 tensors, 100 x
 * 3)". */
const char *soak_describe(const struct soak_call *call);

#endif
