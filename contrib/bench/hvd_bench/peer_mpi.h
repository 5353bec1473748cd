/* SPDX-License-Identifier: Apache-2.0 */
/* MPI has to start before hvd: both ask the launcher's server for their rank, and the
 * server does not answer MPI after a child of the same process has disconnected. */
#ifndef HVD_BENCH_PEER_MPI_H
#define HVD_BENCH_PEER_MPI_H

#include "gpu_binding/base/error.h"

struct bench_mpi;

/* Loads the module and starts MPI, if mpirun or srun has started this process for MPI.
 * Otherwise it keeps the reason for bench_mpi_create. Returns NULL if out of memory. */
struct bench_mpi *bench_mpi_start(void);

/* Ends MPI, after its last use. NULL is allowed. */
void bench_mpi_stop(struct bench_mpi *mpi);

#endif
