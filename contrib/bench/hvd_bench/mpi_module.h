/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-bench-mpi.so, the only part that uses MPI. It is loaded on demand, so that
 * hvd-bench itself does not need MPI, and exports bench_mpi_module. */
#ifndef HVD_BENCH_MPI_MODULE_H
#define HVD_BENCH_MPI_MODULE_H

#include "contrib/bench/hvd_bench/work.h"

struct bench_mpi_module {
    int (*start)(struct hvd_error *err); /* MPI_Init */
    /* Collective. This process is `rank` of `size` in hvd's job, which must have the same
     * processes as MPI's, in any order. */
    int (*join)(int rank, int size, struct hvd_error *err);
    /* Returns HVD_ERR_UNSUPPORTED if MPI has no such type or its counts are too small. */
    int (*prepare)(const struct bench_work *work, struct hvd_error *err);
    /* Runs the work once, by one call of MPI. */
    int (*run)(const struct bench_work *work);
    void (*stop)(void);
};

extern const struct bench_mpi_module bench_mpi_module;

#endif
