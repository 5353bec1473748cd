/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the work by MPI's collectives and messages. */
#include "contrib/bench/hvd_bench/mpi_module.h"

#include <limits.h>
#include <mpi.h>

#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/error.h"

/* These are not in a struct, because a process has only one MPI. */
static MPI_Comm comm = MPI_COMM_NULL; /* with the ranks of hvd's job */
static MPI_Datatype type;
static MPI_Op operation;

static int start_mpi(struct hvd_error *err)
{
    int provided;

    return MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS
               ? 0
               : hvd_fail(err, HVD_ERR_UNSUPPORTED, "MPI_Init failed");
}

static int join_world(int rank, int size, struct hvd_error *err)
{
    int found;

    MPI_Comm_size(MPI_COMM_WORLD, &found);
    if (found != size) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "MPI has %d ranks, but hvd has %d: start the job by mpirun -np %d "
            "hvd-bench ... or srun --mpi=pmix",
            found, size, size);
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    return 0;
}

static int prepare_call(const struct bench_work *work, struct hvd_error *err)
{
    const MPI_Datatype types[HVD_DTYPE_COUNT] = {
        [HVD_UINT8] = MPI_UINT8_T,   [HVD_INT8] = MPI_INT8_T,
        [HVD_UINT16] = MPI_UINT16_T, [HVD_INT16] = MPI_INT16_T,
        [HVD_INT32] = MPI_INT32_T,   [HVD_UINT32] = MPI_UINT32_T,
        [HVD_INT64] = MPI_INT64_T,   [HVD_UINT64] = MPI_UINT64_T,
        [HVD_FLOAT32] = MPI_FLOAT,   [HVD_FLOAT64] = MPI_DOUBLE,
    };
    const MPI_Op operations[HVD_OP_COUNT] = {[HVD_SUM] = MPI_SUM,
                                             [HVD_MIN] = MPI_MIN,
                                             [HVD_MAX] = MPI_MAX,
                                             [HVD_PRODUCT] = MPI_PROD};
    bool reduces = bench_collective_reduces(work->collective);

    type = types[work->dtype];
    operation = operations[work->op];
    if (type == 0 && !reduces) {
        type = work->element == 2 ? MPI_UINT16_T : MPI_UINT8_T;
    }
    if (type == 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "MPI has no such data type");
    }
    if (operation == 0 && reduces) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "MPI has no average");
    }
    return work->input_count <= INT_MAX && work->output_count <= INT_MAX
               ? 0
               : hvd_fail(err, HVD_ERR_UNSUPPORTED, "MPI cannot count beyond %d",
                          INT_MAX);
}

/* Sends to the next rank and receives from the one before. */
static int run_messages(const struct bench_work *work)
{
    const int next = (work->rank + 1) % work->size, count = (int)work->input_count;
    const int before = (work->rank + work->size - 1) % work->size;

    return MPI_Sendrecv(work->input, count, type, next, 0, work->output, count, type,
                        before, 0, comm, MPI_STATUS_IGNORE);
}

static int run_ping_pong(const struct bench_work *work)
{
    const int other = work->rank ^ 1, count = (int)work->input_count;
    int status = MPI_SUCCESS;

    if (other >= work->size) {
        return status;
    }
    if (work->rank < other) {
        status = MPI_Send(work->input, count, type, other, 0, comm);
    }
    if (status == MPI_SUCCESS) {
        status = MPI_Recv(work->output, count, type, other, 0, comm, MPI_STATUS_IGNORE);
    }
    if (status == MPI_SUCCESS && work->rank > other) {
        status = MPI_Send(work->input, count, type, other, 0, comm);
    }
    return status;
}

static int run_call(const struct bench_work *work)
{
    char *input = work->input, *output = work->output;
    int count = (int)work->input_count;
    int share = count / work->size;

    switch (work->collective) {
    case BENCH_ALLREDUCE:
        return MPI_Allreduce(input, output, count, type, operation, comm);
    case BENCH_BROADCAST:
        return MPI_Bcast(work->rank == 0 ? input : output, count, type, 0, comm);
    case BENCH_ALLGATHER:
        return MPI_Allgather(input, count, type, output, count, type, comm);
    case BENCH_ALLTOALL:
        return MPI_Alltoall(input, share, type, output, share, type, comm);
    case BENCH_REDUCESCATTER:
        return MPI_Reduce_scatter_block(input, output, share, type, operation, comm);
    case BENCH_REDUCE:
        return MPI_Reduce(input, output, count, type, operation, 0, comm);
    case BENCH_GATHER:
        return MPI_Gather(input, count, type, output, count, type, 0, comm);
    case BENCH_SCATTER:
        return MPI_Scatter(input, share, type, output, share, type, 0, comm);
    case BENCH_SENDRECV:
        return run_messages(work);
    case BENCH_PINGPONG:
        return run_ping_pong(work);
    default:
        return MPI_Barrier(comm);
    }
}

static void stop_mpi(void)
{
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
}

HVD_EXPORT const struct bench_mpi_module bench_mpi_module = {
    .start = start_mpi,
    .join = join_world,
    .prepare = prepare_call,
    .run = run_call,
    .stop = stop_mpi,
};
