/* SPDX-License-Identifier: Apache-2.0 */
/* A library that hvd-bench-child can call, found at run time. There is one in a process. */
#ifndef HVD_BENCH_LIBRARY_H
#define HVD_BENCH_LIBRARY_H

#include <stddef.h>

#include "contrib/bench/hvd_bench/work.h"

enum {
    BENCH_GREETING = 4096
};

/* Who this child is. */
struct bench_seat {
    int rank, size;
    int local_rank, local_size;
};

/* All return 0 or fail with HVD_ERR_UNSUPPORTED and the reason, if nothing else is said. */
struct bench_library {
    const char *name;
    /* Loads it. path: what the user named, or NULL. */
    int (*load)(const char *path, struct hvd_error *err);
    /* On rank 0, before join: what the others have to know. NULL: nothing. */
    int (*greet)(const struct bench_seat *seat, char greeting[BENCH_GREETING],
                 struct hvd_error *err);
    /* Collective. The environment says where a PMI server is. */
    int (*join)(const struct bench_seat *seat, const char greeting[BENCH_GREETING],
                struct hvd_error *err);
    /* In good order; collective, if it has joined. */
    void (*leave)(void);
    int (*prepare)(const struct bench_work *work, struct hvd_error *err);
    /* The work once, each tensor by one call; not 0 when a call has failed. */
    int (*run)(const struct bench_work *work);
};

extern const struct bench_library bench_library_mpich;
extern const struct bench_library bench_library_oneccl;

#endif
