/* SPDX-License-Identifier: Apache-2.0 */
/* What mpi_module.c needs of MPI, as MPICH's binary interface has it: that of libmpich.so.12 and
 * of the other libraries that keep to it, Intel MPI and MVAPICH. With it nothing of MPICH has to
 * be there when hvd is built. The numbers are those of Debian's MPICH 4.0.2. */
#ifndef HVD_BENCH_MPICH_ABI_H
#define HVD_BENCH_MPICH_ABI_H

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Request;
typedef struct hvd_mpich_status MPI_Status; /* never looked at */

#define MPI_SUCCESS 0
#define MPI_THREAD_FUNNELED 1
#define MPI_IN_PLACE ((void *)-1)

#define MPI_STATUS_IGNORE ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)

#define MPI_COMM_NULL ((MPI_Comm)0x04000000)
#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)

#define MPI_DATATYPE_NULL ((MPI_Datatype)0x0c000000)
#define MPI_INT8_T ((MPI_Datatype)0x4c000137)
#define MPI_UINT8_T ((MPI_Datatype)0x4c00013b)
#define MPI_INT16_T ((MPI_Datatype)0x4c000238)
#define MPI_UINT16_T ((MPI_Datatype)0x4c00023c)
#define MPI_INT32_T ((MPI_Datatype)0x4c000439)
#define MPI_UINT32_T ((MPI_Datatype)0x4c00043d)
#define MPI_INT64_T ((MPI_Datatype)0x4c00083a)
#define MPI_UINT64_T ((MPI_Datatype)0x4c00083e)
#define MPI_FLOAT ((MPI_Datatype)0x4c00040a)
#define MPI_DOUBLE ((MPI_Datatype)0x4c00080b)

#define MPI_OP_NULL ((MPI_Op)0x18000000)
#define MPI_MAX ((MPI_Op)0x58000001)
#define MPI_MIN ((MPI_Op)0x58000002)
#define MPI_SUM ((MPI_Op)0x58000003)
#define MPI_PROD ((MPI_Op)0x58000004)

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Finalize(void);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Allreduce(const void *input, void *output, int count, MPI_Datatype type,
                  MPI_Op op, MPI_Comm comm);
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Allgather(const void *input, int input_count, MPI_Datatype input_type,
                  void *output, int output_count, MPI_Datatype output_type,
                  MPI_Comm comm);
int MPI_Alltoall(const void *input, int input_count, MPI_Datatype input_type,
                 void *output, int output_count, MPI_Datatype output_type, MPI_Comm comm);
int MPI_Reduce_scatter_block(const void *input, void *output, int count,
                             MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Reduce(const void *input, void *output, int count, MPI_Datatype type, MPI_Op op,
               int root, MPI_Comm comm);
int MPI_Gather(const void *input, int input_count, MPI_Datatype input_type, void *output,
               int output_count, MPI_Datatype output_type, int root, MPI_Comm comm);
int MPI_Scatter(const void *input, int input_count, MPI_Datatype input_type, void *output,
                int output_count, MPI_Datatype output_type, int root, MPI_Comm comm);
int MPI_Send(const void *input, int count, MPI_Datatype type, int dest, int tag,
             MPI_Comm comm);
int MPI_Recv(void *output, int count, MPI_Datatype type, int source, int tag,
             MPI_Comm comm, MPI_Status *status);
int MPI_Isend(const void *input, int count, MPI_Datatype type, int dest, int tag,
              MPI_Comm comm, MPI_Request *request);
int MPI_Irecv(void *output, int count, MPI_Datatype type, int source, int tag,
              MPI_Comm comm, MPI_Request *request);
int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses);
int MPI_Barrier(MPI_Comm comm);

#endif
