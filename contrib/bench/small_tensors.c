/* SPDX-License-Identifier: Apache-2.0 */
/* Many small allreduces at once, of hvd against MPI_Iallreduce, in the same processes.
 *
 *   mpirun -np 2 small_tensors [COUNT [BYTES [TURNS]]]
 *
 * float32, Sum, separate input and output. A turn submits COUNT tensors (default 1000) of BYTES
 * each (default 1024) one by one and waits for all; it counts its slowest rank. The two take
 * turns (default 51), so that both see the same machine. Printed in microseconds: hvd's first
 * turn, when the ranks do not know the names, the medians of the others, and their ratio. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "contrib/bench/batch.h"
#include "contrib/bench/median.h"

enum {
    MOST_TURNS = 1001,
    WARM_UP_TURNS = 10
};

static MPI_Request *mpi_requests;

static void run_hvd(struct batch *batch)
{
    batch_run(batch);
}

static void run_mpi(struct batch *batch)
{
    for (int i = 0; i < batch->count; i++) {
        MPI_Iallreduce(batch->in + i * batch->elements, batch->out + i * batch->elements,
                       (int)batch->elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &mpi_requests[i]);
    }
    MPI_Waitall(batch->count, mpi_requests, MPI_STATUSES_IGNORE);
}

/* Seconds on the slowest rank. */
static double time_turn(void (*run)(struct batch *batch), struct batch *batch)
{
    double start, mine, slowest;

    MPI_Barrier(MPI_COMM_WORLD);
    start = seconds_now();
    run(batch);
    mine = seconds_now() - start;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void measure(struct batch *batch, int turns)
{
    double hvd[MOST_TURNS], mpi[MOST_TURNS], first, h, m;

    first = time_turn(run_hvd, batch);
    batch_check(batch, "hvd");
    run_mpi(batch);
    batch_check(batch, "MPI_Iallreduce");
    for (int i = 0; i < WARM_UP_TURNS; i++) {
        run_hvd(batch);
        run_mpi(batch);
    }
    for (int i = 0; i < turns; i++) {
        hvd[i] = time_turn(run_hvd, batch);
        mpi[i] = time_turn(run_mpi, batch);
    }
    h = median(hvd, turns);
    m = median(mpi, turns);
    if (hvd_rank() == 0) {
        printf("%10s %12s %12s %12s %8s\n", "tensors", "first us", "hvd us", "MPI us",
               "MPI/hvd");
        printf("%10d %12.0f %12.0f %12.0f %8.2f\n", batch->count, first * 1e6, h * 1e6,
               m * 1e6, m / h);
    }
}

static int argument(int argc, char **argv, int index, int otherwise)
{
    int value = argc > index ? atoi(argv[index]) : otherwise;

    return value < 1 ? 1 : value;
}

int main(int argc, char **argv)
{
    int count = argument(argc, argv, 1, 1000), bytes = argument(argc, argv, 2, 1024);
    int turns = argument(argc, argv, 3, 51), size;
    struct hvd_error err = {0};
    struct batch batch;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mpi_requests = calloc((size_t)count, sizeof(MPI_Request));
    if (mpi_requests == NULL || hvd_init(&err) != 0 || hvd_size() != size) {
        fprintf(stderr, "hvd: %s\n", err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    batch_init(&batch, "small", count, bytes / 4);
    measure(&batch, turns > MOST_TURNS ? MOST_TURNS : turns);
    batch_finish(&batch);
    free(mpi_requests);
    hvd_shutdown();
    MPI_Finalize();
    return 0;
}
