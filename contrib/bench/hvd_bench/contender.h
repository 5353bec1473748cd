/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody who can run the work: a level of hvd or a peer. */
#ifndef HVD_BENCH_CONTENDER_H
#define HVD_BENCH_CONTENDER_H

#include <stdlib.h>

#include "contrib/bench/hvd_bench/job.h"
#include "contrib/bench/hvd_bench/work.h"

/* All functions but finish and destroy are called on all ranks, one after the other.
 * Where one fails on some ranks, the caller tells all. */
struct bench_contender_ops {
    /* Gets ready for a work, which outlives it. HVD_ERR_UNSUPPORTED, with the reason,
     * when this is nothing that it does; it is finished in any case. */
    int (*prepare)(void *self, struct bench_work *work, struct hvd_error *err);
    /* Runs it `calls` times, back to back. *seconds: how long this rank took. */
    int (*run)(void *self, int calls, double *seconds, struct hvd_error *err);
    /* Runs it once and compares. The buffers are filled. NULL: run, then look at the
     * output of the work. */
    int (*check)(void *self, struct hvd_error *err);
    void (*finish)(void *self); /* NULL: nothing to end */
    void (*destroy)(void *self);
};

struct bench_contender {
    const char *name; /* as in --level and --vs */
    const struct bench_contender_ops *ops; /* NULL: not there */
    void *self;
};

/* Makes one with a self of `bytes` zeros, for the makers below. */
static inline int bench_contender_create(const char *name,
                                         const struct bench_contender_ops *ops,
                                         size_t bytes, struct bench_contender *out,
                                         struct hvd_error *err)
{
    *out = (struct bench_contender){.name = name, .ops = ops, .self = calloc(1, bytes)};
    return out->self != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
}

/* Each makes one: *out is filled and the caller destroys its self. All are collective;
 * HVD_ERR_UNSUPPORTED, with the reason, where there is no such contender here. program:
 * what the user named behind =, or NULL. */
typedef int (*bench_contender_maker)(const struct bench_job *job, const char *program,
                                     struct bench_contender *out, struct hvd_error *err);

struct hvd_algorithm_choices;

/* 0, or HVD_ERR_UNSUPPORTED when this is nothing that hvd does. */
int bench_runtime_supports(const struct bench_work *work, struct hvd_error *err);

int bench_runtime_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err);
int bench_team_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err);

/* The level "team" by algorithms that are not the job's; both arguments are borrowed. */
int bench_forced_create(const struct hvd_algorithm_choices *choices, const char *name,
                        struct bench_contender *out, struct hvd_error *err);
int bench_builtin_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err);
int bench_mpi_create(const struct bench_job *job, const char *program,
                     struct bench_contender *out, struct hvd_error *err);
int bench_limit_create(const struct bench_job *job, const char *program,
                       struct bench_contender *out, struct hvd_error *err);
int bench_ucx_limit_create(const struct bench_job *job, const char *program,
                           struct bench_contender *out, struct hvd_error *err);
int bench_gloo_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err);

#endif
