/* SPDX-License-Identifier: Apache-2.0 */
/* A contender runs the work and is timed: a level of hvd (--level), or a peer such as
 * another library (--vs). */
#ifndef HVD_BENCH_CONTENDER_H
#define HVD_BENCH_CONTENDER_H

#include <stdlib.h>

#include "contrib/bench/hvd_bench/job.h"
#include "contrib/bench/hvd_bench/work.h"

/* All functions except finish and destroy are called on all ranks, one function after the
 * other. If one fails on some ranks, the caller tells the others. */
struct bench_contender_ops {
    /* Gets ready for a work, which exists until finish. Returns HVD_ERR_UNSUPPORTED, with
     * the reason, if the contender cannot do this work. finish is called in any case. */
    int (*prepare)(void *self, struct bench_work *work, struct hvd_error *err);
    /* Runs the work `calls` times, back to back. *seconds: how long this rank took. */
    int (*run)(void *self, int calls, double *seconds, struct hvd_error *err);
    /* Runs the work once and checks the result. The caller has filled the buffers. NULL:
     * the caller runs the work and checks its output. */
    int (*check)(void *self, struct hvd_error *err);
    void (*finish)(void *self); /* NULL: nothing to do */
    void (*destroy)(void *self);
};

struct bench_contender {
    const char *name; /* as in --level and --vs */
    const struct bench_contender_ops *ops; /* NULL: there is no contender */
    void *self;
};

/* Makes a contender whose self is `bytes` zeros; used by the makers below. */
static inline int bench_contender_create(const char *name,
                                         const struct bench_contender_ops *ops,
                                         size_t bytes, struct bench_contender *out,
                                         struct hvd_error *err)
{
    *out = (struct bench_contender){.name = name, .ops = ops, .self = calloc(1, bytes)};
    return out->self != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
}

/* Fills *out; the caller destroys its self. Each maker is collective. Returns
 * HVD_ERR_UNSUPPORTED, with the reason, if the contender cannot be used here. program:
 * the text after = in --vs, or NULL. */
typedef int (*bench_contender_maker)(const struct bench_job *job, const char *program,
                                     struct bench_contender *out, struct hvd_error *err);

struct hvd_algorithm_choices;

/* Returns 0, or HVD_ERR_UNSUPPORTED if hvd cannot do this work. */
int bench_runtime_supports(const struct bench_work *work, struct hvd_error *err);

int bench_runtime_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err);
int bench_team_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err);

/* Makes the level "team" with other algorithms than the job's; both arguments are
 * borrowed. */
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
