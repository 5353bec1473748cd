/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce of hvd against MPI_Allreduce, in the same processes and the same run.
 *
 *   mpirun -np 2 allreduce_vs_mpi [TURNS]      srun --mpi=pmix -N2 -n2 allreduce_vs_mpi
 *
 * float32, Sum, separate input and output. For each size the two take turns (default 11), so
 * that both see the same machine; a turn is a row of back-to-back calls and counts its slowest
 * rank. Printed: medians over the turns, and their ratio. hvd is timed through its public
 * interface, from submission to completion. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "contrib/bench/median.h"

static const double turn_seconds = 0.05;

enum {
    MOST_TURNS = 101,
    MOST_CALLS = 20000
};

static const int64_t sizes[] = {8,         64,      512,      4 << 10, 32 << 10,
                                256 << 10, 2 << 20, 16 << 20, 64 << 20};

static int rank, size;

static void run_mpi(const float *in, float *out, int64_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void run_hvd(const float *in, float *out, int64_t count)
{
    struct hvd_tensor tensor = {.name = "bench",
                                .input = in,
                                .output = out,
                                .shape = &count,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    struct hvd_error err;

    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0 ||
        hvd_wait(request, &err) != 0) {
        fprintf(stderr, "rank %d: %s\n", rank, err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    hvd_request_free(request);
}

typedef void (*runner)(const float *in, float *out, int64_t count);

/* Seconds per call on the slowest rank. */
static double time_calls(runner run, const float *in, float *out, int64_t count,
                         int calls)
{
    double start, mine, slowest;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        run(in, out, count);
    }
    mine = (MPI_Wtime() - start) / calls;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int calls_per_turn(runner run, const float *in, float *out, int64_t count)
{
    double each = time_calls(run, in, out, count, 3);
    double calls = turn_seconds / each;

    return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

static void check(const char *who, float *out, int64_t count)
{
    float expected = (float)(size * (size + 1)) / 2;

    for (int64_t i = 0; i < count; i++) {
        if (out[i] != expected) {
            fprintf(stderr, "rank %d: %s: element %lld is %g, expected %g\n", rank, who,
                    (long long)i, (double)out[i], (double)expected);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    memset(out, 0, (size_t)count * sizeof(out[0]));
}

static void measure(int64_t bytes, int turns)
{
    int64_t count = bytes / (int64_t)sizeof(float);
    float *in = malloc((size_t)bytes), *out = calloc(1, (size_t)bytes);
    double mpi[MOST_TURNS], hvd[MOST_TURNS];
    int mpi_calls, hvd_calls;

    if (in == NULL || out == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int64_t i = 0; i < count; i++) {
        in[i] = (float)(rank + 1);
    }
    run_mpi(in, out, count);
    check("MPI_Allreduce", out, count);
    run_hvd(in, out, count);
    check("hvd_allreduce", out, count);
    mpi_calls = calls_per_turn(run_mpi, in, out, count);
    hvd_calls = calls_per_turn(run_hvd, in, out, count);
    for (int i = 0; i < turns; i++) {
        mpi[i] = time_calls(run_mpi, in, out, count, mpi_calls);
        hvd[i] = time_calls(run_hvd, in, out, count, hvd_calls);
    }
    if (rank == 0) {
        double m = median(mpi, turns), h = median(hvd, turns);

        printf("%10lld %12.2f %12.2f %8.2f\n", (long long)bytes, h * 1e6, m * 1e6, m / h);
        fflush(stdout);
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 11;
    struct hvd_error err = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (hvd_init(&err) != 0 || hvd_size() != size) {
        fprintf(stderr, "rank %d: hvd: %s\n", rank, err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    turns = turns < 1 ? 1 : turns > MOST_TURNS ? MOST_TURNS : turns;
    if (rank == 0) {
        printf("allreduce float32 sum, %d ranks, median of %d turns\n", size, turns);
        printf("%10s %12s %12s %8s\n", "bytes", "hvd us", "MPI us", "MPI/hvd");
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        measure(sizes[i], turns);
    }
    hvd_shutdown();
    MPI_Finalize();
    return 0;
}
