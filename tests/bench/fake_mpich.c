/* SPDX-License-Identifier: Apache-2.0 */
/* An MPICH that goes wrong: its allreduce leaves the output alone, or, with FAKE_MPICH=die, rank 1
 * ends in it while the others wait. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"

static int number(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? atoi(text) : 0;
}

HVD_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc;
    (void)argv;
    *provided = required;
    return MPI_SUCCESS;
}

HVD_EXPORT int MPI_Finalize(void)
{
    return MPI_SUCCESS;
}

HVD_EXPORT int MPI_Comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = number("PMI_SIZE");
    return MPI_SUCCESS;
}

HVD_EXPORT int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    (void)color;
    (void)key;
    *made = comm;
    return MPI_SUCCESS;
}

HVD_EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

HVD_EXPORT int MPI_Allreduce(const void *input, void *output, int count,
                             MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const char *what = getenv("FAKE_MPICH");

    (void)input;
    (void)output;
    (void)count;
    (void)type;
    (void)op;
    (void)comm;
    if (what != NULL && strcmp(what, "die") == 0) {
        if (number("PMI_RANK") == 1) {
            _exit(3);
        }
        pause();
    }
    return MPI_SUCCESS;
}

/* Those that no test calls. */
HVD_EXPORT int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root,
                         MPI_Comm comm)
{
    return MPI_Allreduce(buffer, buffer, count, type, root, comm);
}

HVD_EXPORT int MPI_Allgather(const void *input, int input_count, MPI_Datatype input_type,
                             void *output, int output_count, MPI_Datatype output_type,
                             MPI_Comm comm)
{
    return MPI_Allreduce(input, output, input_count + output_count, input_type,
                         output_type, comm);
}

HVD_EXPORT int MPI_Alltoall(const void *input, int input_count, MPI_Datatype input_type,
                            void *output, int output_count, MPI_Datatype output_type,
                            MPI_Comm comm)
{
    return MPI_Allgather(input, input_count, input_type, output, output_count,
                         output_type, comm);
}

HVD_EXPORT int MPI_Reduce_scatter_block(const void *input, void *output, int count,
                                        MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return MPI_Allreduce(input, output, count, type, op, comm);
}

HVD_EXPORT int MPI_Reduce(const void *input, void *output, int count, MPI_Datatype type,
                          MPI_Op op, int root, MPI_Comm comm)
{
    return MPI_Allreduce(input, output, count + root, type, op, comm);
}

HVD_EXPORT int MPI_Gather(const void *input, int input_count, MPI_Datatype input_type,
                          void *output, int output_count, MPI_Datatype output_type,
                          int root, MPI_Comm comm)
{
    return MPI_Allgather(input, input_count + root, input_type, output, output_count,
                         output_type, comm);
}

HVD_EXPORT int MPI_Scatter(const void *input, int input_count, MPI_Datatype input_type,
                           void *output, int output_count, MPI_Datatype output_type,
                           int root, MPI_Comm comm)
{
    return MPI_Gather(input, input_count, input_type, output, output_count, output_type,
                      root, comm);
}

/* Messages are not tried with it. */
HVD_EXPORT int MPI_Send(const void *input, int count, MPI_Datatype type, int dest,
                        int tag, MPI_Comm comm)
{
    return MPI_Allreduce(input, NULL, count + dest + tag, type, MPI_OP_NULL, comm);
}

HVD_EXPORT int MPI_Recv(void *output, int count, MPI_Datatype type, int source, int tag,
                        MPI_Comm comm, MPI_Status *status)
{
    return status == MPI_STATUS_IGNORE ? MPI_Send(output, count, type, source, tag, comm)
                                       : -1;
}

HVD_EXPORT int MPI_Isend(const void *input, int count, MPI_Datatype type, int dest,
                         int tag, MPI_Comm comm, MPI_Request *request)
{
    *request = dest;
    return MPI_Send(input, count, type, dest, tag, comm);
}

HVD_EXPORT int MPI_Irecv(void *output, int count, MPI_Datatype type, int source, int tag,
                         MPI_Comm comm, MPI_Request *request)
{
    *request = source;
    return MPI_Send(output, count, type, source, tag, comm);
}

HVD_EXPORT int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    return count > 0 && requests != NULL && statuses != NULL ? MPI_SUCCESS : -1;
}

HVD_EXPORT int MPI_Barrier(MPI_Comm comm)
{
    return MPI_Allreduce(NULL, NULL, 0, MPI_DATATYPE_NULL, MPI_OP_NULL, comm);
}
