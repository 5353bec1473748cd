/* SPDX-License-Identifier: Apache-2.0 */
/* MPI has to start before hvd does: both ask the launcher's server who they are, and MPI
 * cannot ask one that a child of its process has taken leave of. */
#ifndef HVD_BENCH_PEER_MPI_H
#define HVD_BENCH_PEER_MPI_H

#include "gpu_binding/base/error.h"

struct bench_mpi;

/* Loads the module and starts MPI, where mpirun or srun has started this process for it;
 * else keeps the reason. NULL when there is no memory. */
struct bench_mpi *bench_mpi_start(void);

/* When nobody uses MPI any more. NULL is fine. */
void bench_mpi_stop(struct bench_mpi *mpi);

#endif
