/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of hvd: collectives among the ranks of a job.
 *
 *     #include <hvd.h>
 *
 *     struct hvd_error error;
 *     struct hvd_request *request;
 *     float values[1000];
 *     const int64_t shape[] = {1000};
 *     const struct hvd_tensor tensor = {.name = "gradient", .input = values,
 *         .output = values, .shape = shape, .ndim = 1, .dtype = HVD_FLOAT32,
 *         .device = HVD_DEVICE_CPU};
 *
 *     hvd_init(&error);                  // on every rank; returns 0, or sets error.text
 *     compute(values, hvd_rank(), hvd_size());
 *     hvd_allreduce_start(&tensor, 1, HVD_AVERAGE, 1.0, 1.0, HVD_SET_GLOBAL, &request,
 *                         &error);
 *     compute_something_else();          // while hvd reduces the tensor
 *     hvd_wait(request, &error);         // values is now the average over all ranks
 *     hvd_request_free(request);
 *     hvd_shutdown();
 *
 *     cc train.c $(pkg-config --cflags --libs hvd) -o train
 *     hvdrun -np 4 ./train     # or: srun --hvd ./train, mpirun -np 4 ./train
 *
 * A whole program, which checks the status of every call: contrib/examples/fit/fit.c.
 *
 * Requests: a hvd_*_start function takes tensors and returns at once. hvd_wait or
 * hvd_test tells when the request has ended; hvd_request_free frees it. All ranks of the
 * process set start the same requests, in any order; hvd matches them by the names of the
 * tensors. A name may be used again when the previous request with this name has ended.
 * hvd fuses small requests that are under way at the same time, so start all of them,
 * then wait.
 *
 * Errors: a function that can fail returns 0, or a negative enum hvd_status
 * (hvd_status.h) and a sentence for the user in err, which may be NULL. If err is NULL
 * both at the start of a request and in hvd_wait, the rank can do without the result:
 * hvdrun does not take the failure for the reason why the rank ends. For requests:
 *
 *   status                           consequence
 *   HVD_ERR_ARG, _UNSUPPORTED,       from a start function: nothing was submitted. Other
 *     _STATE, _NOMEM                 ranks that started the request wait for this one
 *   HVD_ERR_MISMATCH                 the ranks disagree about this request (shape, type,
 *                                    order, ...): it fails on all of them with the same
 *                                    text; the job goes on
 *   HVD_ERR_ABORTED                  a rank has given up the process set:
 *                                    hvd_set_abort_start
 *   HVD_ERR_PEER, _NET, _SYS,        the job is over: every pending and later request of
 *     _TIMEOUT, and _NOMEM later on  every rank fails. The text names the rank and the
 *                                    cause. Call hvd_shutdown
 *   HVD_ERR_SHUTDOWN                 a rank has called hvd_shutdown
 *
 * Memory: input and output belong to the caller. They must stay where they are, and the
 * caller must not touch them, until hvd_wait or hvd_test reports the end or a failure.
 * All other arguments of a start function (names, shapes, splits, lists) are copied.
 *
 * GPUs: input and output may lie in the memory of a CUDA device. Each process uses one
 * device, and if a tensor is on a GPU on one rank, it is on all ranks. The collective
 * waits for the caller's stream, and hvd_wait_on makes the caller's stream wait for the
 * collective, so no thread waits for the device. hvd_wait and hvd_test report the end
 * when the device is done. hvd_gpu_synchronize waits until the device is done with all
 * collectives; call it before every checkpoint. If the library allocates a result on a
 * device, hvd_request_copy hands it over. A stream that is being captured into a CUDA
 * graph is refused (HVD_ERR_UNSUPPORTED). Tensors go through NCCL if all ranks of the
 * process set have it, else through host memory. NCCL rounds 16-bit sums at every
 * addition, and its results may differ in the last bits from run to run.
 *
 * Threads: any thread may call any function at any time; hvd_init and hvd_shutdown wait
 * for each other. A request is waited for, read and freed by one thread. A forked child
 * is not a rank: functions that need the job return HVD_ERR_STATE there. Results do not
 * depend on the caller's floating-point environment (rounding, flush to zero, traps), and
 * no call changes it.
 *
 * Settings are environment variables, which hvd_init reads: Horovod's, such as
 * HOROVOD_FUSION_THRESHOLD, and hvd's own, HVD_*. The page variables.md lists them. */
#ifndef HVD_H
#define HVD_H

#include <stddef.h>
#include <stdint.h>

#include "hvd_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hvd_dtype {
    HVD_UINT8,
    HVD_INT8,
    HVD_UINT16,
    HVD_INT16,
    HVD_INT32,
    HVD_INT64,
    HVD_FLOAT16,
    HVD_FLOAT32,
    HVD_FLOAT64,
    HVD_BOOL, /* one byte, 0 or 1. Sum and Max: "or". Product and Min: "and" */
    HVD_BFLOAT16, /* Horovod has no numbers for this type and those below */
    HVD_UINT32,
    HVD_UINT64,
    HVD_DTYPE_COUNT
};

enum hvd_op {
    HVD_AVERAGE, /* sum / size; for integers, truncated toward zero; not for HVD_BOOL */
    HVD_SUM,
    /* for floating-point types; the number of ranks must be a power of two; see
     * hvd_allreduce_start */
    HVD_ADASUM,
    HVD_MIN, /* MIN and MAX: NaN if any rank has NaN */
    HVD_MAX,
    HVD_PRODUCT,
    /* bitwise and, or, exclusive or: for integers and HVD_BOOL on the host; prescale and
     * postscale must be 1 */
    HVD_BAND,
    HVD_BOR,
    HVD_BXOR,
    HVD_OP_COUNT
};

enum {
    HVD_DEVICE_CPU = -1, /* other values: the index of a CUDA device */
    HVD_SET_GLOBAL = 0, /* the process set of all ranks */
    HVD_MAX_DIMS = 64,
    HVD_ANY_SOURCE = -1, /* for hvd_recv_start: receive from any rank */
};

#define HVD_CALL_UNORDERED (UINT64_C(1) << 63)
#define HVD_OUTPUT_IF_FITS (SIZE_MAX ^ (SIZE_MAX >> 1))

/* A dense row-major tensor. It may have no elements. A tensor with ndim 0 has one
 * element. */
struct hvd_tensor {
    /* The name by which ranks match the tensor. In a process set, only one tensor of a
     * name can be under way at a time. Names that begin with "hvd." are reserved. */
    const char *name;
    const void *input;
    void *output; /* may be equal to input, to work in place; see also output_bytes */
    const int64_t *shape; /* [ndim], of the input */
    int ndim;
    enum hvd_dtype dtype;
    int device; /* HVD_DEVICE_CPU, or the index of a CUDA device; see "GPUs" above */
    /* The type in which elements travel between ranks, the same on all ranks. 0: dtype.
     * HVD_FLOAT16 and HVD_BFLOAT16 are for hvd_allreduce_start only, which describes
     * them. */
    int wire;
    /* For a tensor on a GPU: the caller's CUDA stream (NULL: the default stream). The
     * collective begins when the work that is on the stream at the call is done, because
     * that work may compute the input and use the output. */
    void *stream;
    /* For allgather, gather and alltoall: the size of output in bytes; the result goes
     * there. 0: the library allocates the result and ignores output. Add
     * HVD_OUTPUT_IF_FITS if the library may also allocate a result that is larger than
     * output: the number of rows then tells where the result is. */
    size_t output_bytes;
    /* The number of the call, or 0. Calls are matched by names, in any order. A program
     * whose ranks all make the same calls of a set in the same order may also number
     * them: all tensors of a call get the same number. If two ranks then make different
     * calls under one number, they do not wait for each other for ever: within a second
     * or two, all numbered calls of the set fail on all its ranks, those under way and
     * later ones, with HVD_ERR_MISMATCH and a text that names two ranks and their calls.
     * If the set is not the global one, it is then lost, as after hvd_set_abort_start.
     *
     * Add HVD_CALL_UNORDERED to the number of a call that another rank may make earlier
     * or later. Such a call is counted, and fails with the others, but is not compared
     * with calls of other ranks. */
    uint64_t call;
};

struct hvd_request; /* made by the start functions, freed by hvd_request_free */

/* --- life --------------------------------------------------------------------------- */

/* Joins the job of all ranks that the launcher (srun --hvd, hvdrun, mpirun) started. A
 * process without a launcher is rank 0 of 1. Returns when all ranks are connected, or
 * fails after HVD_START_TIMEOUT seconds (default 60). A second call does nothing. */
int hvd_init(struct hvd_error *err);

/* Like hvd_init, but the job consists of only `count` of the ranks that the launcher
 * started. These ranks, and no others, call it with the same list. In the job they are
 * ranks 0 to count - 1, in the order of the list. Jobs without a common rank may run at
 * the same time, and a rank may join another job after hvd_shutdown. HVD_ERR_ARG: this
 * rank is not in the list, or a rank of the list does not exist or is listed twice. */
int hvd_init_ranks(const int *ranks, int count, struct hvd_error *err);

/* A store that ranks without a launcher use to exchange values, such as files in a shared
 * folder, or a server of the program's framework. Values are small (about 300 bytes per
 * rank of the job). Keys are letters, digits and dots, at most 63 of them. hvd calls the
 * functions on the thread that has called hvd_init_with; they must not call
 * hvd_init_with. A function that fails may write a sentence about the failure to
 * err->text. */
struct hvd_store {
    void *context; /* passed to the functions */
    /* Keeps a copy of the value. Other ranks see the whole value or none. Each key is put
     * once. Returns 0, or any other number if it has failed. */
    int (*put)(void *context, const char *key, const void *value, size_t bytes,
               struct hvd_error *err);
    /* Returns 0 and the value, which must be from malloc, because hvd frees it. Returns
     * HVD_INPROGRESS if no rank has put the key yet; it may first wait for at most
     * timeout_ms. hvd then asks again. Returns any other number if it has failed. */
    int (*get)(void *context, const char *key, int timeout_ms, void **value,
               size_t *bytes, struct hvd_error *err);
};

/* Like hvd_init, but this process is rank `rank` of `size`, whatever has started it, and
 * finds the other ranks by means of the store. All of them call this function with the
 * same size and with stores that share their values. The store is used during the call
 * only. The same store may be used again after hvd_shutdown; each start adds size + 1
 * values to it. Another job needs a store of its own (another folder or prefix). Anybody
 * who can read the values could pose as a rank.
 *
 *   HVD_ERR_TIMEOUT    ranks are missing; the text names them
 *   HVD_ERR_SYS        the store has failed
 *   HVD_ERR_MISMATCH   the store's values are not from this start */
int hvd_init_with(int rank, int size, const struct hvd_store *store,
                  struct hvd_error *err);

/* Leaves the job and ends it for all ranks: requests that run already are completed;
 * pending and later requests fail with HVD_ERR_SHUTDOWN. Every rank has to call this
 * function; a rank that exits without calling it counts as dead. Requests still have to
 * be freed, before or after this call. When every rank has called it, hvd_init may be
 * called again. Does nothing without hvd_init. Returns 0. */
int hvd_shutdown(void);

/* Like hvd_shutdown, for a rank that cannot go on, or whose program ends (why is then
 * ""). On all ranks, the text of the requests that fail because of this call ends with
 * "rank 1 on n1: " and `why` (copied; a line of at most about 150 characters). */
int hvd_shutdown_because(const char *why);

/* Returns 1 between hvd_init and hvd_shutdown, else 0. */
int hvd_is_initialized(void);

/* Return the numbers of this rank and of the job; HVD_ERR_STATE before hvd_init. */
int hvd_rank(void); /* number in the job, from 0 */
int hvd_size(void);
int hvd_local_rank(void); /* number on its node, from 0; use it as the index of the GPU */
int hvd_local_size(void);
/* index of this node among the nodes that have this local rank */
int hvd_cross_rank(void);
int hvd_cross_size(void);
int hvd_is_homogeneous(void); /* 1: all nodes have the same number of ranks; else 0 */

/* Counts a step of the training, which `hvd-info --job` and `--pid` and the page of a
 * straggler report show. Returns 0, or HVD_ERR_STATE before hvd_init. One thread at a
 * time. */
int hvd_count_step(void);

/* Mark a section of the training, such as "data": the straggler report (HVD_REPORT) tells
 * how long each rank was in each section, and in which section a late rank lost its time.
 * Sections nest; time counts for the innermost. Names are cut after 31 bytes; of more
 * than 16 names, the last stands for all others. Without a report, the calls do nothing.
 * Return 0; HVD_ERR_ARG: no name; HVD_ERR_STATE: there is no job, or no section to end.
 * One thread at a time. */
int hvd_section_begin(const char *name);
int hvd_section_end(void);

/* Returns the host name of a rank, valid until hvd_shutdown; NULL if there is no such
 * rank. */
const char *hvd_host(int rank);

/* --- collectives -----------------------------------------------------------------------
 * Collectives run among the ranks of a process set: HVD_SET_GLOBAL, or a set that was
 * added or created. Each function returns 0 and a request, which the caller frees, or a
 * negative status and no request. The `count` tensors of a call are a group: they run and
 * end together. */

/* Computes output[i] = post * op over ranks of (pre * input[i]), where pre is prescale
 * and post is postscale. All ranks give the same shape, op, prescale and postscale; a
 * factor of 1.0 does nothing. An average is divided by the size of the process set, even
 * after some ranks have joined. Every rank gets the same bits, and gets them again in a
 * later run with the same layout (on GPUs: see above).
 *
 *   elements       Sum, Product     pre * x, post * Sum     Average
 *   integers       wrap around      in double (53 bits),    post = 1: divided exactly;
 *                                   then truncated          else post * Sum / size in
 *                                                           double; then truncated
 *   16-bit floats  in float, then   in float, before        in float, before rounding
 *                  rounded once     rounding
 *
 * "Truncated" means toward zero.
 *
 * Adasum combines ranks 0 and 1, 2 and 3, ..., then the results of these pairs, and so
 * on. Vectors a and b give a * (1 - a.b / 2|a|^2) + b * (1 - a.b / 2|b|^2); for a vector
 * that is 0, its expression in brackets is 1. Orthogonal vectors give their sum, equal
 * ones their mean. Each tensor is one vector. Dot products are summed in double; 16-bit
 * floats are rounded once.
 *
 * Wire types: a float32 tensor may travel as HVD_FLOAT16 or HVD_BFLOAT16 (tensor.wire),
 * which halves the bytes that go between ranks. This works with Sum and Average; other
 * types and ops give HVD_ERR_ARG.
 *
 *   where   how
 *   host    pre * input[i] is rounded to the wire type (to nearest, ties to even; values
 *           that are too large become infinite, NaN stays NaN). The rounded tensor is
 *           reduced in the wire type, and every rank, this one included, gets the result
 *           as float32. This takes memory for half of the tensors' bytes
 *   GPU     kernels do the same, and NCCL adds in the wire type. post, and 1 / size of an
 *           average, are multiplied after the sum for float16, before it for bfloat16 */
int hvd_allreduce_start(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                        double prescale, double postscale, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Concatenates the tensors of all ranks along dimension 0, in the order of the ranks.
 * Dimension 0 may differ between ranks; a tensor has at least one dimension. Each rank
 * chooses by tensor.output_bytes where it gets the result:
 *
 *   output_bytes   the result
 *   0              is in memory that the library allocates: hvd_request_take
 *   above 0        goes to tensor.output without another copy. hvd_request_rows has the
 *                  number of rows. If the result is larger than output_bytes, this rank's
 *                  request ends with HVD_ERR_ARG, and the job goes on
 *
 * The input of an allgather may be this rank's part of its output. It must not overlap
 * the rest of the output. */
int hvd_allgather_start(const struct hvd_tensor *tensors, int count, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Copies the input of rank `root` to the output of every rank, root included. root is a
 * number in the job, even if the set is not the global one. The input of other ranks is
 * ignored. All ranks give the same shape. */
int hvd_broadcast_start(const struct hvd_tensor *tensor, int root, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Sends the first splits[0] rows of dimension 0 to the first rank of the set, the next
 * splits[1] rows to the second one, and so on; nsplits is the size of the set. With
 * splits NULL and nsplits 0, all parts are equal. The result has the rows in the order of
 * the ranks that sent them. It lies where hvd_allgather_start would put it, and
 * hvd_request_splits has the number of rows from each rank. Input and output must not
 * overlap. */
int hvd_alltoall_start(const struct hvd_tensor *tensor, const int32_t *splits,
                       int nsplits, int set, struct hvd_request **request,
                       struct hvd_error *err);

/* Reduces like hvd_allreduce_start, and gives each rank its part of dimension 0: the i-th
 * rank of the set gets rows / size rows, and the first rows % size ranks get one more.
 * Adasum is not possible. output has room for this rank's rows and does not overlap
 * input. */
int hvd_reducescatter_start(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                            double prescale, double postscale, int set,
                            struct hvd_request **request, struct hvd_error *err);

/* Reduces like hvd_allreduce_start, but only rank `root` gets the result, in its output.
 * Adasum and wire types are not possible. In this function and the next two, root is a
 * number in the job, as in hvd_broadcast_start. They ignore the output of a rank that
 * gets no data, and the input of a rank that gives none. */
int hvd_reduce_start(const struct hvd_tensor *tensor, enum hvd_op op, double prescale,
                     double postscale, int root, int set, struct hvd_request **request,
                     struct hvd_error *err);

/* Like hvd_allgather_start, but only rank `root` gets the result. The result of the other
 * ranks has no rows. */
int hvd_gather_start(const struct hvd_tensor *tensor, int root, int set,
                     struct hvd_request **request, struct hvd_error *err);

/* Splits the input of rank `root` along dimension 0, and gives each rank its part. All
 * ranks give the shape of root's input. The parts, and the room that output needs, are
 * those of hvd_reducescatter_start. */
int hvd_scatter_start(const struct hvd_tensor *tensor, int root, int set,
                      struct hvd_request **request, struct hvd_error *err);

/* Starts an ended request again, with the arguments of its first start: a persistent
 * request, in the words of MPI. This saves what the first start has checked, allocated
 * and looked up. The request may have succeeded or failed. Other ranks may start their
 * requests again, or start new ones: only the names matter. `tensors` is NULL if the
 * memory is the same. Otherwise it has as many tensors as the request, and only their
 * input, output and call are read.
 *
 *   HVD_ERR_UNSUPPORTED   the request is not a reduction, broadcast or scatter of host
 *                         tensors
 *   HVD_ERR_STATE         the job of the request has ended
 *
 * After a failure, the caller may free the request or try again. */
int hvd_request_start(struct hvd_request *request, const struct hvd_tensor *tensors,
                      struct hvd_error *err);

/* The barrier ends when every rank of the set has started it. hvd_barrier_call_start is a
 * numbered call: see `call` of struct hvd_tensor; the number may be 0 on some ranks.
 * Barriers of these two functions do not match each other. */
int hvd_barrier_start(int set, struct hvd_request **request, struct hvd_error *err);
int hvd_barrier_call_start(int set, uint64_t call, struct hvd_request **request,
                           struct hvd_error *err);

/* Tells the other ranks that this rank has no more data. The request ends when all ranks
 * have joined; hvd_request_last_rank then returns the rank that joined last. Until then,
 * in the global process set:
 *
 *   requests                              after this rank has joined
 *   allreduce (Sum, Average, Adasum)      this rank takes part with zeros
 *   barrier                               does not wait for this rank
 *   other collectives, other ops,         fail on all ranks
 *     adding sets, and removing them
 *   requests that this rank starts        fail with HVD_ERR_ARG, on this rank alone */
int hvd_join_start(struct hvd_request **request, struct hvd_error *err);

/* --- messages --------------------------------------------------------------------------
 * One rank sends to another; the other ranks take no part. A message goes to the oldest
 * receive with the same set and tag whose source is the sender or HVD_ANY_SOURCE.
 * Messages of one rank with one set and tag arrive in the order in which they were
 * started. dest and source are numbers in the job, even if the set is not the global one.
 * A rank may send to itself. A tensor needs no name.
 *
 *   message       when the send ends
 *   up to 16 KiB  at once, because the message is copied. But if the receiver holds more
 *                 than 1 MiB of this sender's messages that no receive has taken, the
 *                 send ends like that of a larger message
 *   larger        when a receive has taken the message, which is not copied before
 *
 * Tensors on a GPU go through pinned host memory. The tensor of a send may be on a GPU
 * and that of its receive on the host, or the other way round. A send begins when the
 * caller's stream has computed the tensor. For a receive, hvd_wait_on returns when the
 * message is on the host, and makes the stream wait for its copy to the GPU.
 *
 * Start receives before you wait for sends that may be large. End a set's messages before
 * you remove the set. Call a barrier before hvd_shutdown: a rank that leaves ends the
 * job, and a receive that is started after that fails, even if its message was sent
 * before. */

/* Sends tensor.input. */
int hvd_send_start(const struct hvd_tensor *tensor, int dest, int64_t tag, int set,
                   struct hvd_request **request, struct hvd_error *err);

/* Receives into tensor.output, from the rank `source` or HVD_ANY_SOURCE. If the message
 * has another number of bytes than the tensor, the receive ends with HVD_ERR_MISMATCH;
 * the send does, too, unless it has ended already. Shapes and types are not compared. */
int hvd_recv_start(const struct hvd_tensor *tensor, int source, int64_t tag, int set,
                   struct hvd_request **request, struct hvd_error *err);

/* --- being stopped ---------------------------------------------------------------------
 * A signal tells a job that it is about to be preempted or to reach its time limit
 * (sbatch --signal=USR1@120); ranks receive it at different moments. hvd_should_stop
 * gives all ranks the same answer, so that they write one checkpoint of one step. */

/* After this call, a SIGTERM or SIGUSR1 to this process is only noted, for
 * hvd_should_stop. A handler that the program had set before is called as well. A signal
 * that the program ignored stays ignored. A handler that the program sets later replaces
 * hvd's. In forked children, signals act as they would without hvd. Any thread may call
 * this, also before hvd_init. Returns 0 or HVD_ERR_SYS.
 *
 * No other function changes a signal handler, with one exception: when the job of a step
 * of `srun --hvd` has failed, a SIGTERM that would end the process ends it 5 s later.
 * srun sends SIGTERM to all ranks, and the delay lets them print why they end. */
int hvd_stop_on_signals(void);

/* Returns the same on all ranks: SIGTERM if any of them has received one before this
 * call, else SIGUSR1 if any has received that, else 0, or a failure. All ranks must call
 * it: it is an allreduce of one number, and costs a training step as much as the smallest
 * tensor. Once it has returned a signal, it never returns 0 again. The first call also
 * does the work of hvd_stop_on_signals. One thread at a time. */
int hvd_should_stop(struct hvd_error *err);

/* Makes this process end with `status` when it returns from main or calls exit, whatever
 * status it passes. For front ends in languages that cannot change it at that time, such
 * as Python. Handlers that were registered by atexit before this call do not run. Returns
 * 0 or HVD_ERR_NOMEM. Any thread. */
int hvd_set_exit_status(int status);

/* --- process sets ----------------------------------------------------------------------
 * A process set consists of some of the job's ranks and has collectives of its own. Sets
 * may overlap and run at the same time. Set 0 is the global one.
 *
 *   function                hvd_set_add_start           hvd_set_create_start
 *   sets are made and       by all ranks, in the same   by the members, whatever other
 *     removed               order, while no rank has    ranks do, even while ranks have
 *                           joined                      joined
 *   sets are known to       all ranks                   the members
 *   sets of the same ranks  one                         one for each label */

/* Adds a set of `count` ranks, listed in any order; hvd_request_set returns its number.
 * All ranks give the same members. There must be no other added set with the same
 * members. */
int hvd_set_add_start(const int *ranks, int count, struct hvd_request **request,
                      struct hvd_error *err);

/* Like hvd_set_add_start, but only the members call it. The request of each member ends
 * when all members have called it. Other ranks on the members' nodes, and some between
 * them and rank 0, pass messages on, without their programs noticing.
 *
 * label (NULL: ""; at most 1,000 bytes) tells sets apart: sets that share a rank need
 * different labels until they are removed, even if they have the same members. Sets
 * without a common rank may have the same label. Requests may be started in any order.
 *
 *   HVD_ERR_ARG       this rank is not in ranks, or a set of this label has one of them
 *   HVD_ERR_MISMATCH  one of the ranks creates a set of other ranks under the same label:
 *                     all members of both sets that have called, or call later, fail */
int hvd_set_create_start(const int *ranks, int count, const char *label,
                         struct hvd_request **request, struct hvd_error *err);

/* Removes a set. The request ends when all ranks of the job (for a created set: all
 * members) have asked for it and their collectives on the set have ended. */
int hvd_set_remove_start(int set, struct hvd_request **request, struct hvd_error *err);

/* Aborts a set that this rank is a member of and has not asked to remove; the other
 * members need not do anything. The request ends soon, when the abort has reached this
 * rank. Requests of the set, under way or later, then fail on all members with
 * HVD_ERR_ABORTED and a text that names this rank and `why` (a line, or NULL; 280 bytes
 * are kept). But collectives that all members have started, and messages for which both
 * sides are there, run to their end. The job and other sets go on, and the set remains
 * until it is removed. To give up a set after a time limit, call hvd_wait_for, then this
 * function. HVD_ERR_ARG: the set is the global one; use hvd_shutdown_because. */
int hvd_set_abort_start(int set, const char *why, struct hvd_request **request,
                        struct hvd_error *err);

/* Facts about a set whose addition or creation has ended on this rank: hvd_set_size
 * returns its size. hvd_set_rank returns the index of this rank in it, or
 * HVD_ERR_UNSUPPORTED if it is not a member. hvd_set_ranks writes its ranks in ascending
 * order to the caller's array, which has room for all of them. HVD_ERR_ARG: this rank
 * knows no such set. */
int hvd_set_size(int set);
int hvd_set_rank(int set);
int hvd_set_ranks(int set, int *ranks);

/* hvd_set_count returns the number of sets that this rank knows, including the global
 * one. hvd_set_ids writes their ids to an array of that length. */
int hvd_set_count(void);
int hvd_set_ids(int *ids);

/* --- requests ----------------------------------------------------------------------- */

/* Returns 0 if the request has succeeded, HVD_INPROGRESS, or the failure. Does not block,
 * but may do some of the request's work. hvd_test and hvd_wait may be called again after
 * the end, with the same result. */
int hvd_test(struct hvd_request *request, struct hvd_error *err);

/* Blocks until the request has ended. Returns 0 or the failure. The calling thread may do
 * the work of requests meanwhile. */
int hvd_wait(struct hvd_request *request, struct hvd_error *err);

/* Like hvd_wait, but returns HVD_INPROGRESS after timeout_ms milliseconds (negative: no
 * limit; 0: returns at once without doing any work). For callers that handle signals. */
int hvd_wait_for(struct hvd_request *request, int timeout_ms, struct hvd_error *err);

/* For tensors on GPUs: returns 0 as soon as the request is on the streams of the GPU, and
 * makes the caller's stream wait for its end. If the device or another rank fails after
 * that, a later call reports it. For host tensors: like hvd_wait_for. */
int hvd_wait_on(struct hvd_request *request, void *stream, int timeout_ms,
                struct hvd_error *err);

/* Blocks until the GPU has finished all collectives of this rank for which hvd_wait_on
 * has returned 0. Returns HVD_INPROGRESS after timeout_ms milliseconds (negative: no
 * limit), 0 at the end or if there is no job or GPU, or the failure of the job. After a
 * failure, streams that waited for a collective continue, with wrong results, NaN at
 * best: so call this before you save data that were computed from them. Any thread. */
int hvd_gpu_synchronize(int timeout_ms, struct hvd_error *err);

/* hvd_gpu_memory_is_short returns 1 if hvd lacks memory on the GPU and works in pinned
 * host memory instead, which is slower; it returns 1 at most once in ten seconds, else 0.
 * The caller then frees GPU memory that it does not need, such as a framework's cache,
 * and calls hvd_gpu_memory_freed. The next collective tries the GPU again. These
 * functions call no code of the caller and do not wait. Any thread. */
int hvd_gpu_memory_is_short(void);
void hvd_gpu_memory_freed(void);

/* For tensor `index` (from 0) of an allgather, gather or alltoall, after its end (on a
 * GPU also after hvd_wait_on): hvd_request_rows stores the number of rows (dimension 0)
 * of the result. hvd_request_copy copies a result that the library allocated on a GPU to
 * `output`, which is memory of the device, on the stream; the stream waits for the end.
 * HVD_ERR_STATE: it is too early, or the request is of another kind. */
int hvd_request_rows(struct hvd_request *request, int index, int64_t *rows);
int hvd_request_copy(struct hvd_request *request, int index, void *output, void *stream,
                     struct hvd_error *err);

/* Hands over the output that the library allocated for tensor `index` (from 0) of a
 * finished allgather, gather or alltoall, once per tensor. *data (aligned to 64 bytes,
 * NULL if empty) belongs to the caller, who frees it with hvd_free. *rows is its
 * dimension 0; its other dimensions are those of the input. HVD_ERR_STATE: the request is
 * under way, has failed, was on a GPU, is of another kind, or used the caller's memory.
 */
int hvd_request_take(struct hvd_request *request, int index, void **data, int64_t *rows);

/* Writes the number of rows that came from each rank in a finished alltoall (on a GPU
 * also after hvd_wait_on), to an array with one number per rank of the set. HVD_ERR_STATE
 * otherwise. */
int hvd_request_splits(struct hvd_request *request, int32_t *splits);

/* hvd_request_last_rank returns the rank that joined last, after hvd_join_start has
 * ended. hvd_request_set returns the number of the set, after hvd_set_add_start or
 * hvd_set_create_start has ended. HVD_ERR_STATE otherwise. */
int hvd_request_last_rank(struct hvd_request *request);
int hvd_request_set(struct hvd_request *request);

/* Returns the rank that sent the message of a finished receive (on a GPU also after
 * hvd_wait_on). HVD_ERR_STATE otherwise. */
int hvd_request_source(struct hvd_request *request);

/* Frees the request after waiting for its end, unless a stream waits for it
 * (hvd_wait_on). NULL is allowed. */
void hvd_request_free(struct hvd_request *request);

void hvd_free(void *data); /* memory that hvd_request_take handed over; NULL is allowed */

/* --- timeline --------------------------------------------------------------------------
 * A timeline is a file for chrome://tracing and Perfetto that shows when each tensor was
 * agreed on, run and done; it is valid JSON at any moment. HOROVOD_TIMELINE=FILE records
 * from hvd_init on. */

/* Rank 0 records to the file `path` from now on; on other ranks, the call has no effect.
 * A recording to the same path continues, and one to another path ends. mark_cycles: also
 * record the rounds of agreement. A file that cannot be written is an error in the log,
 * not a failure: training goes on. err may be NULL.
 *
 *   HVD_ERR_ARG        HOROVOD_TIMELINE was not set at hvd_init. Set it to DYNAMIC to
 *                      record with these functions only
 *   HVD_ERR_SHUTDOWN   the job is ending */
int hvd_timeline_start(const char *path, int mark_cycles, struct hvd_error *err);

/* Ends the recording, if there is one; on rank 0 the file is complete on return. */
int hvd_timeline_stop(struct hvd_error *err);

/* --- elastic jobs ----------------------------------------------------------------------
 * A job that was started with srun --hvd=elastic or hvdrun --min-np N continues when
 * ranks die. The requests of the remaining ranks fail, and these ranks call hvd_shutdown
 * and hvd_init. hvd_init returns with new rank numbers: ranks that have called
 * hvd_elastic_ready come first, in their old order. Ranks are added and removed in the
 * same way, when all other ranks have called both functions.
 *
 * The first rank that ends with exit(0) ends the job with success. A process that calls
 * hvd_init after that, or whose slot was removed, gets HVD_ERR_DISMISSED and the reason:
 * it should exit with 0. */

/* Returns 1 if the job is elastic, else 0; HVD_ERR_STATE before hvd_init. */
int hvd_elastic(void);

/* hvd_elastic_updates returns a bit field of these values, or 0: ranks are to be removed
 * or added. The change happens when all ranks have called hvd_shutdown and hvd_init.
 * Ranks may see it at different times. HVD_ERR_STATE before hvd_init. */
enum {
    HVD_ELASTIC_REMOVED = 1,
    HVD_ELASTIC_ADDED = 2
};
int hvd_elastic_updates(void);

/* Declares that this rank has the state of the training, or its initial state, and can
 * send it to others. Once a rank has called this, hvd_init fails with HVD_ERR_STATE if
 * all ranks that have called it are gone. Returns 0 or HVD_ERR_STATE. */
int hvd_elastic_ready(void);

/* --- facts -------------------------------------------------------------------------- */

const char *hvd_version(void); /* "0.1.0" */

/* Writes how hvd_init would find the other ranks of this process: "hvd's rendezvous
 * service", for example, or why it would fail. It looks only at the environment, and
 * works before hvd_init. The text has at most `size` bytes with the final null byte.
 * Returns 0, or the status with which hvd_init would fail. */
int hvd_start_describe(char *text, size_t size);

/* Return the versions that GPU tensors would use on this machine: of CUDA, by its driver
 * (12040 is 12.4), and of NCCL (21803 is 2.18.3). 0: none can be used. They work before
 * hvd_init. */
int hvd_cuda_version(void);
int hvd_nccl_version(void);

/* Writes the same facts as text: files, problems, the GPUs for which there are kernels,
 * and whether UCX accepts GPU memory. The text has at most `size` bytes with the final
 * null byte. To find out about UCX, it opens the network, as a job over several nodes
 * does, and closes it again, which takes time. Returns 0, or HVD_ERR_UNSUPPORTED if GPU
 * tensors cannot be used. */
int hvd_gpu_describe(char *text, size_t size);

size_t hvd_dtype_bytes(enum hvd_dtype dtype); /* 0: there is no such dtype */
const char *hvd_dtype_name(enum hvd_dtype dtype); /* Horovod's names: "float32" */

#ifdef __cplusplus
}
#endif

#endif
