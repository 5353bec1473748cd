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
 * process set start the same requests, in any order; the names of the tensors match them.
 * A name may be used again when the request before has ended. hvd fuses small requests
 * that are under way at the same time, so start all of them, then wait.
 *
 * Errors: a function that can fail returns 0, or a negative enum hvd_status
 * (hvd_status.h) and a sentence for the user in err, which may be NULL. For requests:
 *
 *   status                           consequence
 *   HVD_ERR_ARG, _UNSUPPORTED,       from a start function: nothing was submitted. Ranks
 *     _STATE, _NOMEM                 that started the request wait for this one
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
 * GPUs: input and output may lie in the memory of a CUDA device, one device for each
 * process; the tensors of all ranks then do. The collective waits for the caller's
 * stream, and hvd_wait_on makes the caller's stream wait for the collective, so no thread
 * waits for the device. hvd_wait and hvd_test report the end when the device is done;
 * hvd_gpu_synchronize, which belongs in front of every checkpoint, that of all.
 * hvd_request_copy hands over what the library allocates on a device. A stream that is
 * being captured into a CUDA graph is refused (HVD_ERR_UNSUPPORTED). Tensors go through
 * NCCL if all ranks of the process set have it, else through host memory. NCCL rounds
 * 16-bit sums at every addition, and its results may differ in the last bits from run to
 * run.
 *
 * Threads: any thread may call any function at any time; hvd_init and hvd_shutdown wait
 * for each other. A request is waited for, read and freed by one thread. A forked child
 * is not a rank: functions that need the job return HVD_ERR_STATE there. Results do not
 * depend on the caller's floating-point environment (rounding, flush to zero, traps), and
 * no call changes it.
 *
 * Settings are environment variables, read by hvd_init: HOROVOD_FUSION_THRESHOLD and
 * others of Horovod, and HVD_* of hvd. The page variables.md lists them. */
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
    HVD_BFLOAT16, /* Horovod has no numbers for this and the next ones */
    HVD_UINT32,
    HVD_UINT64,
    HVD_DTYPE_COUNT
};

enum hvd_op {
    HVD_AVERAGE, /* Sum / size; integers are truncated toward zero; not for bool */
    HVD_SUM,
    HVD_ADASUM, /* floats, on a power of two of ranks; see hvd_allreduce_start */
    HVD_MIN, /* NaN if any rank has NaN; the same for Max */
    HVD_MAX,
    HVD_PRODUCT,
    /* bits: "and", "or", "exclusive or"; of integers and bool on the host, no factors */
    HVD_BAND,
    HVD_BOR,
    HVD_BXOR,
    HVD_OP_COUNT
};

enum {
    HVD_DEVICE_CPU = -1, /* other values: the index of a CUDA device */
    HVD_SET_GLOBAL = 0, /* the process set of all ranks */
    HVD_MAX_DIMS = 64,
    HVD_ANY_SOURCE = -1, /* hvd_recv_start: from whatever rank */
};

#define HVD_CALL_UNORDERED (UINT64_C(1) << 63)

/* A dense row-major tensor. It may have no elements; ndim 0 is one element. */
struct hvd_tensor {
    /* Matches the tensor between ranks. Each name may be under way once in a process set.
     * Names that begin with "hvd." are reserved. */
    const char *name;
    const void *input;
    void *output; /* the same as input: in place. See output_bytes */
    const int64_t *shape; /* [ndim], of the input */
    int ndim;
    enum hvd_dtype dtype;
    int device; /* HVD_DEVICE_CPU, or the index of a CUDA device; see "GPUs" above */
    /* The type in which elements travel between ranks, the same on all ranks. 0: dtype.
     * HVD_FLOAT16, HVD_BFLOAT16: for hvd_allreduce_start only, see there. */
    int wire;
    /* Tensors on a GPU: the CUDA stream (NULL: the default stream) whose present work
     * computes the input and uses the output; the collective begins after that work. */
    void *stream;
    /* Allgather, gather, alltoall: the bytes that output has room for, and the result
     * goes there. 0: the library allocates it, and output is ignored. */
    size_t output_bytes;
    /* Calls are matched by names, in any order. A program whose ranks all make the same
     * calls of a set in the same order may count them, with one number for all tensors of
     * a call; 0: this one has none. Ranks that make different calls of one number, which
     * would wait for each other for ever, are then told so within a second or two: all
     * numbered calls of the set fail on all its ranks, those under way and later ones,
     * with HVD_ERR_MISMATCH and a text that names two ranks and their calls. A set other
     * than the global one is lost as by hvd_set_abort_start. HVD_CALL_UNORDERED is added
     * to the number of a call that another rank may make earlier or later: it is counted
     * and fails with the others, but is not compared with those of other ranks. */
    uint64_t call;
};

struct hvd_request; /* made by the start functions, freed by hvd_request_free */

/* --- life --------------------------------------------------------------------------- */

/* Joins the job of all ranks that the launcher (srun --hvd, hvdrun, mpirun) started; a
 * process without a launcher is rank 0 of 1. Returns when all ranks are connected, or
 * fails after HVD_START_TIMEOUT seconds (default 60). A second call does nothing. */
int hvd_init(struct hvd_error *err);

/* As hvd_init, but the job consists of `count` of the ranks that the launcher started.
 * These ranks, and no others, call it with the same list; in the job they are ranks 0 to
 * count - 1, in the order of the list. Jobs without a common rank may run at the same
 * time, and a rank may join another job after hvd_shutdown. HVD_ERR_ARG: this rank is not
 * in the list, or a rank of the list does not exist or is in it twice. */
int hvd_init_ranks(const int *ranks, int count, struct hvd_error *err);

/* Where ranks that no launcher of hvd started leave values for each other: files in a
 * shared folder, a server of the program's framework. Values are small (about 300 bytes
 * per rank of the job), keys are letters, digits and dots, at most 63 of them. hvd calls
 * the functions on the thread that is in hvd_init_with, which they must not call;
 * err->text may take a sentence about a failure. */
struct hvd_store {
    void *context; /* handed to the functions */
    /* Keeps a copy of the value; other ranks see all of it or none. Each key is put once.
     * Returns 0, or another number: it failed. */
    int (*put)(void *context, const char *key, const void *value, size_t bytes,
               struct hvd_error *err);
    /* Returns 0 and the value, from malloc: hvd frees it; or HVD_INPROGRESS: nobody has
     * put the key yet. May wait for it, for at most timeout_ms; hvd asks again. Other
     * numbers: it failed. */
    int (*get)(void *context, const char *key, int timeout_ms, void **value,
               size_t *bytes, struct hvd_error *err);
};

/* As hvd_init, but this process is rank `rank` of `size`, whatever started it, and finds
 * the others by the store: all of them call this with the same size and stores that share
 * their values. The store is needed for the call only. It may be used again after
 * hvd_shutdown, and gains size + 1 values with each start; another job needs another one
 * (a folder or a prefix of its own). Whoever can read the values could pose as a rank.
 * HVD_ERR_TIMEOUT names the ranks that are missing; HVD_ERR_SYS: the store failed;
 * HVD_ERR_MISMATCH: its values are not those of this start. */
int hvd_init_with(int rank, int size, const struct hvd_store *store,
                  struct hvd_error *err);

/* Leaves the job and ends it for all ranks: running requests end, pending and later ones
 * fail with HVD_ERR_SHUTDOWN. Every rank has to call this; a rank that exits without it
 * counts as dead. Requests still have to be freed, before or after. When every rank has
 * called this, hvd_init may be called again. Does nothing without hvd_init. Returns 0. */
int hvd_shutdown(void);

/* The same by a rank that cannot go on, or ("") whose program ends. The text of the
 * requests that fail by it, on all ranks, ends with "rank 1 on n1: " and why (copied; a
 * line of at most about 150 characters). */
int hvd_shutdown_because(const char *why);

/* Returns 1 between hvd_init and hvd_shutdown, else 0. */
int hvd_is_initialized(void);

/* The numbers of this rank; HVD_ERR_STATE before hvd_init. */
int hvd_rank(void); /* in the job, from 0 */
int hvd_size(void);
int hvd_local_rank(void); /* on its node, from 0; use it as the index of the GPU */
int hvd_local_size(void);
int hvd_cross_rank(void); /* index of this node among those that have this local rank */
int hvd_cross_size(void);
int hvd_is_homogeneous(void); /* 1: all nodes have the same number of ranks; else 0 */

/* The host name of a rank, valid until hvd_shutdown; NULL: there is no such rank. */
const char *hvd_host(int rank);

/* --- collectives -----------------------------------------------------------------------
 * Collectives run among the ranks of a process set: HVD_SET_GLOBAL, or a set that was
 * added or created. Each function returns 0 and a request, which the caller frees, or a
 * negative status and no request. The `count` tensors of a call are a group: they run and
 * end together. */

/* output[i] = post * op over ranks of (pre * input[i]). All ranks give the same shape, op
 * and factors; a factor of 1.0 does nothing. The size of an average is that of the
 * process set, also after some ranks have joined. Every rank gets the same bits, and gets
 * them again in a later run with the same layout (on GPUs: see above).
 *
 *   elements       Sum, Product     pre * x, post * Sum     Average
 *   integers       wrap around      in double (53 bits),    post = 1: divided exactly;
 *                                   then truncated          else post * Sum / size in
 *                                                           double; then truncated
 *   16-bit floats  in float, then   in float, before        in float, before rounding
 *                  rounded once     rounding
 *
 * "Truncated" is toward zero.
 *
 * Adasum pairs ranks 0 and 1, 2 and 3, ..., then the results of the pairs, and so on. A
 * pair a, b gives a * (1 - a.b / 2|a|^2) + b * (1 - a.b / 2|b|^2), where a factor is 1 if
 * its vector is 0: the sum of orthogonal vectors, the mean of equal ones. Each tensor is
 * one vector. Dot products are summed in double; 16-bit floats are rounded once.
 *
 * Wire types: a float32 tensor may travel as HVD_FLOAT16 or HVD_BFLOAT16 (tensor.wire),
 * with Sum and Average; HVD_ERR_ARG for other types and ops. Half as many bytes go
 * between ranks.
 *
 *   where   how
 *   host    pre * input[i] is rounded to the wire type (to nearest, ties to even; values
 *           that are too large become infinite, NaN stays NaN) and reduced as a tensor of
 *           that type; every output, also this rank's own, is the result as float32. This
 *           takes memory for half of the tensors' bytes
 *   GPU     kernels do the same; NCCL adds in the wire type. post, and 1 / size of an
 *           average, multiply float16 after the sum, bfloat16 before it */
int hvd_allreduce_start(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                        double prescale, double postscale, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Concatenates the tensors of all ranks along dimension 0, in the order of the ranks.
 * Dimension 0 may differ between ranks; a tensor has at least one dimension. Each rank
 * chooses where it gets the result:
 *
 *   tensor.output_bytes  the result
 *   0                    is in memory that the library allocates: hvd_request_take
 *   more                 goes to tensor.output without another copy. hvd_request_rows has
 *                        the number of rows. If the result has more bytes than that, this
 *                        rank's request ends with HVD_ERR_ARG, and the job goes on
 *
 * The input of an allgather may be this rank's part of its output, and must not overlap
 * the rest of the output. */
int hvd_allgather_start(const struct hvd_tensor *tensors, int count, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Copies the input of root to the output of every rank, also its own. root is a rank of
 * the job, whatever the set. The input of other ranks is ignored. All ranks give the same
 * shape. */
int hvd_broadcast_start(const struct hvd_tensor *tensor, int root, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Sends the next splits[i] rows of dimension 0 to the i-th rank of the set; nsplits is
 * the size of the set. splits NULL and nsplits 0: equal parts. The result has the rows in
 * the order of the ranks that sent them, in memory as of an allgather, and
 * hvd_request_splits has the rows of each rank. Input and output must not overlap. */
int hvd_alltoall_start(const struct hvd_tensor *tensor, const int32_t *splits,
                       int nsplits, int set, struct hvd_request **request,
                       struct hvd_error *err);

/* Reduces as hvd_allreduce_start does, and gives each rank its part of dimension 0: the
 * i-th rank of the set gets rows / size rows, the first rows % size ranks one more.
 * Without Adasum. output has room for this rank's rows and does not overlap input. */
int hvd_reducescatter_start(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                            double prescale, double postscale, int set,
                            struct hvd_request **request, struct hvd_error *err);

/* Reduces as hvd_allreduce_start does, to the output of root; without Adasum and wire
 * types. The next three have root as hvd_broadcast_start has it. Output of a rank that
 * gets nothing and input of one that gives nothing are ignored. */
int hvd_reduce_start(const struct hvd_tensor *tensor, enum hvd_op op, double prescale,
                     double postscale, int root, int set, struct hvd_request **request,
                     struct hvd_error *err);

/* As hvd_allgather_start, to root: the others get a result without rows. */
int hvd_gather_start(const struct hvd_tensor *tensor, int root, int set,
                     struct hvd_request **request, struct hvd_error *err);

/* Gives each rank its part of dimension 0 of the input of root, whose shape all ranks
 * give. The parts are those of hvd_reducescatter_start, and so is the room in output. */
int hvd_scatter_start(const struct hvd_tensor *tensor, int root, int set,
                      struct hvd_request **request, struct hvd_error *err);

/* Starts a request once more that has ended, well or not, with what it was started with:
 * a persistent request, as MPI has them. It saves what the first start has checked,
 * allocated and looked up. Ranks may start their requests again or start others: only the
 * names matter. `tensors` is NULL for the same memory, or has as many tensors as the
 * request, of which input, output and call are read. For reductions, broadcasts and
 * scatters of host tensors, else HVD_ERR_UNSUPPORTED; HVD_ERR_STATE for a request of a
 * job that has ended. One that could not be started may be freed or tried again. */
int hvd_request_start(struct hvd_request *request, const struct hvd_tensor *tensors,
                      struct hvd_error *err);

/* Ends when every rank of the set has started the barrier. The second is a numbered call:
 * see call of struct hvd_tensor, which may be 0 on some ranks. Barriers of one function
 * do not meet the other's. */
int hvd_barrier_start(int set, struct hvd_request **request, struct hvd_error *err);
int hvd_barrier_call_start(int set, uint64_t call, struct hvd_request **request,
                           struct hvd_error *err);

/* This rank has no more data. Ends when all ranks have joined; hvd_request_last_rank
 * tells which was the last. Until then:
 *
 *   in the global process set             of this rank, which has joined
 *   allreduce (Sum, Average, Adasum)      takes part with zeros
 *   barrier                               does not wait for this rank
 *   other collectives, other ops;         fail on all ranks
 *     adding sets, and removing those
 *   what this rank starts itself          fails with HVD_ERR_ARG, on this rank alone */
int hvd_join_start(struct hvd_request **request, struct hvd_error *err);

/* --- messages --------------------------------------------------------------------------
 * One rank sends to another; the other ranks take no part. A message goes to the oldest
 * receive that fits: the same set and tag, and its rank or HVD_ANY_SOURCE. Messages of
 * one rank with one set and tag arrive in the order in which they were started. dest and
 * source are ranks of the job, whatever the set; a rank may send to itself. A tensor
 * needs no name.
 *
 *   message       when the send ends
 *   up to 16 KiB  at once, because the message is copied. While the receiver holds more
 *                 than 1 MiB of a sender that no receive has taken, sends of this sender
 *                 end as larger ones do
 *   larger        when a receive has taken it: the message is not copied before
 *
 * Tensors on a GPU go through pinned host memory. Send and receive may be on a GPU and on
 * the host. A send begins when the caller's stream has computed the tensor; hvd_wait_on
 * of a receive returns when the message is on the host, and makes the stream wait for its
 * copy to the GPU.
 *
 * Start receives before you wait for sends that may be large, end a set's messages before
 * you remove it, and have a barrier before hvd_shutdown: a rank that leaves ends the job,
 * and a receive that is started after that fails, even if its message was sent before. */

/* Sends tensor.input. */
int hvd_send_start(const struct hvd_tensor *tensor, int dest, int64_t tag, int set,
                   struct hvd_request **request, struct hvd_error *err);

/* Receives into tensor.output, from a rank or HVD_ANY_SOURCE. If the bytes are not those
 * of the message, the receive ends with HVD_ERR_MISMATCH, and so does the send, unless it
 * has ended; shapes and types are not compared. */
int hvd_recv_start(const struct hvd_tensor *tensor, int source, int64_t tag, int set,
                   struct hvd_request **request, struct hvd_error *err);

/* --- being stopped ---------------------------------------------------------------------
 * A signal tells a job that it is about to be preempted or to reach its time limit
 * (sbatch --signal=USR1@120); ranks receive it at different moments. hvd_should_stop
 * gives all ranks the same answer, so that they write one checkpoint of one step. */

/* From now on a SIGTERM or SIGUSR1 to this process is only noted, for hvd_should_stop. A
 * handler that the program has set before is called as well; a signal that it ignores
 * stays ignored; a handler that it sets later takes the place of hvd's. In forked
 * children signals do what they would do without hvd. Any thread, also before hvd_init;
 * returns 0 or HVD_ERR_SYS.
 *
 * No other function changes a handler, but for this: when the job of a step of `srun
 * --hvd` has failed, a SIGTERM that would end the process ends it 5 s later, because srun
 * sends one to all ranks, and they are to say why they end. */
int hvd_stop_on_signals(void);

/* Collective of all ranks: 1 on all of them when any of them has got such a signal before
 * this call, else 0, or a failure as of an allreduce, which it is: of one number, so that
 * it costs a training step as much as the smallest tensor. The first call includes
 * hvd_stop_on_signals. Once it is 1 it stays 1. One thread at a time. */
int hvd_should_stop(struct hvd_error *err);

/* --- process sets ----------------------------------------------------------------------
 * A process set consists of some of the job's ranks and has collectives of its own; sets
 * may overlap and run at the same time. Set 0 is the global one.
 *
 *                      made by hvd_set_add_start       by hvd_set_create_start
 *   made and removed   by all ranks, in the same       by its members, whatever others
 *                      order, while none has joined    do, also while ranks have joined
 *   known to           all ranks                       its members
 *   of the same ranks  once                            once for each label */

/* Adds a set of `count` ranks, in any order; hvd_request_set tells its number. All ranks
 * give the same members, and no other set that was added has these members. */
int hvd_set_add_start(const int *ranks, int count, struct hvd_request **request,
                      struct hvd_error *err);

/* As hvd_set_add_start, but only the members call it, this rank among them; ends on each
 * when all of them have. Other ranks on the members' nodes, and some on the way to rank
 * 0, pass messages on, which their programs do not notice. label (NULL: ""; at most
 * 1,000 bytes) tells sets apart: sets that share a rank need different labels until they
 * are removed, even if they have the same members; other sets may have the same label.
 * Requests may be started in any order.
 *
 *   HVD_ERR_ARG       this rank is not in ranks; or a set of this label has one of them
 *   HVD_ERR_MISMATCH  one of the ranks creates a set of other ranks under the same label:
 *                     all members of both sets that have called, or call later, fail */
int hvd_set_create_start(const int *ranks, int count, const char *label,
                         struct hvd_request **request, struct hvd_error *err);

/* Removes a set. Ends when all ranks of the job, or all members of a set that was
 * created, have asked for it and their collectives on it have ended. */
int hvd_set_remove_start(int set, struct hvd_request **request, struct hvd_error *err);

/* Gives up a set that this rank is in and has not asked to remove, whatever the others
 * do; ends soon, when this rank has been told. Then on all members requests of the set
 * fail with HVD_ERR_ABORTED and a text that names the rank and `why` (a line, or NULL;
 * 280 bytes are kept), those under way and later ones; but collectives that all members
 * have started, and messages for which both sides are there, run to their end. The job
 * and other sets go on. The set remains until it is removed. So a time limit is
 * hvd_wait_for, which keeps the request, then this. HVD_ERR_ARG: the global set, which
 * hvd_shutdown_because gives up. */
int hvd_set_abort_start(int set, const char *why, struct hvd_request **request,
                        struct hvd_error *err);

/* A set whose addition or creation has ended on this rank: its size; the index of this
 * rank in it, or HVD_ERR_UNSUPPORTED if it is not a member; its ranks in ascending order,
 * into the caller's array of [size]. HVD_ERR_ARG: there is no such set, or others have
 * created it. */
int hvd_set_size(int set);
int hvd_set_rank(int set);
int hvd_set_ranks(int set, int *ranks);

/* The number of sets that this rank knows, with the global one; their ids, into an array
 * of that many. */
int hvd_set_count(void);
int hvd_set_ids(int *ids);

/* --- requests ----------------------------------------------------------------------- */

/* Returns 0: done, HVD_INPROGRESS, or the failure. Does not block; may do some of the
 * work. It and hvd_wait may be called again after the end, with the same result. */
int hvd_test(struct hvd_request *request, struct hvd_error *err);

/* Blocks until the request has ended; returns 0 or the failure. The thread may do the
 * work. */
int hvd_wait(struct hvd_request *request, struct hvd_error *err);

/* As hvd_wait, but returns HVD_INPROGRESS after timeout_ms milliseconds (negative: never;
 * 0: at once, without doing any of the work), for callers that handle signals. */
int hvd_wait_for(struct hvd_request *request, int timeout_ms, struct hvd_error *err);

/* Tensors on GPUs: returns 0 as soon as the request is on the streams of the GPU, and
 * makes the caller's stream wait for its end. A later call reports a failure of the
 * device or of another rank after that. Host tensors: as hvd_wait_for. */
int hvd_wait_on(struct hvd_request *request, void *stream, int timeout_ms,
                struct hvd_error *err);

/* Blocks until the GPU is done with all collectives of this rank that it has been given
 * (for which hvd_wait_on has returned 0), or timeout_ms milliseconds have passed
 * (HVD_INPROGRESS; negative: no limit). Returns 0, also where there is no job or GPU, or
 * the failure of the job. After a failure, streams that waited for a collective go on
 * with results that are wrong, NaN at best: check this before you save what was computed
 * from them. Any thread. */
int hvd_gpu_synchronize(int timeout_ms, struct hvd_error *err);

/* hvd_gpu_memory_is_short: 1 if hvd lacks memory on the GPU and works in pinned host
 * memory in its place, which is slower; at most once in ten seconds, else 0. The caller
 * then frees GPU memory that it holds without need, such as a framework's cache, and
 * calls hvd_gpu_memory_freed: the next collective tries the GPU again. hvd calls nothing
 * of the caller's itself, and waits for nothing. Any thread. */
int hvd_gpu_memory_is_short(void);
void hvd_gpu_memory_freed(void);

/* The result of tensor `index` (from 0) of an allgather, gather or alltoall: its rows
 * (dimension 0), after the end, and on a GPU after hvd_wait_on; and, if the library
 * allocated it on a GPU, a copy of it to memory of the device, on the stream, which waits
 * for the end. HVD_ERR_STATE: too early, or another request. */
int hvd_request_rows(struct hvd_request *request, int index, int64_t *rows);
int hvd_request_copy(struct hvd_request *request, int index, void *output, void *stream,
                     struct hvd_error *err);

/* Hands over the output that the library allocated for tensor `index` (from 0) of a
 * finished allgather, gather or alltoall, once per tensor. *data (aligned to 64 bytes,
 * NULL if empty) belongs to the caller, who frees it with hvd_free; *rows is its
 * dimension 0, the others are those of the input. HVD_ERR_STATE: the request is under
 * way, has failed, was on a GPU, is of another kind, or had the caller's memory. */
int hvd_request_take(struct hvd_request *request, int index, void **data, int64_t *rows);

/* The rows from each rank of a finished alltoall (on a GPU also after hvd_wait_on), into
 * an array with one number per rank of the set. HVD_ERR_STATE as above. */
int hvd_request_splits(struct hvd_request *request, int32_t *splits);

/* The rank that joined last, after hvd_join_start has ended; the number of the set, after
 * hvd_set_add_start or hvd_set_create_start has ended. HVD_ERR_STATE otherwise. */
int hvd_request_last_rank(struct hvd_request *request);
int hvd_request_set(struct hvd_request *request);

/* The rank that sent the message of a finished receive (on a GPU also after hvd_wait_on).
 * HVD_ERR_STATE otherwise. */
int hvd_request_source(struct hvd_request *request);

/* Waits for the end unless a stream does (hvd_wait_on), then frees. NULL is allowed. */
void hvd_request_free(struct hvd_request *request);

void hvd_free(void *data); /* memory that hvd_request_take handed over; NULL is allowed */

/* --- timeline --------------------------------------------------------------------------
 * A timeline is a file for chrome://tracing and Perfetto that shows when each tensor was
 * agreed on, run and done; it is valid JSON at any moment. HOROVOD_TIMELINE=FILE records
 * from hvd_init on. */

/* Rank 0 records to path from now on; other ranks may call it without effect. A recording
 * to the same path continues, one to another path ends. mark_cycles: also record the
 * rounds of agreement. HVD_ERR_ARG: HOROVOD_TIMELINE was not set at hvd_init (DYNAMIC:
 * for these functions only). HVD_ERR_SHUTDOWN: the job is ending. A file that cannot be
 * written is an error in the log, not a failure: training goes on. err may be NULL. */
int hvd_timeline_start(const char *path, int mark_cycles, struct hvd_error *err);

/* Ends the recording, if there is one; on rank 0 the file is complete on return. */
int hvd_timeline_stop(struct hvd_error *err);

/* --- elastic jobs ----------------------------------------------------------------------
 * A job that was started with srun --hvd=elastic or hvdrun --min-np N continues when
 * ranks die. The requests of the other ranks fail; they call hvd_shutdown and hvd_init,
 * which returns with the remaining ranks under new numbers: ranks that have called
 * hvd_elastic_ready come first, in their old order. Ranks join and leave in the same
 * way, when all others have called both functions.
 *
 * The first rank that ends with exit(0) ends the job with success. A process that comes
 * to hvd_init later, and one whose slot was removed, get HVD_ERR_DISMISSED and the
 * reason: they should exit with 0. */

/* 1: the job is elastic, else 0; HVD_ERR_STATE before hvd_init. */
int hvd_elastic(void);

/* Ranks that are to come or to leave, a bit field; 0: none. They do when all ranks have
 * called hvd_shutdown and hvd_init. Ranks may see this at different times. HVD_ERR_STATE
 * as above. */
enum {
    HVD_ELASTIC_REMOVED = 1,
    HVD_ELASTIC_ADDED = 2
};
int hvd_elastic_updates(void);

/* This rank has the state of the training, or its initial state, and can send it to
 * others. Once a rank has called this, hvd_init fails with HVD_ERR_STATE if no rank that
 * did is left. Returns 0 or HVD_ERR_STATE. */
int hvd_elastic_ready(void);

/* --- facts -------------------------------------------------------------------------- */

const char *hvd_version(void); /* "0.1.0" */

/* How hvd_init would find the other ranks of this process, judged by its environment
 * alone, as text of at most size bytes with the final 0: "the PMIx of the launcher", or
 * why it would fail. It works before hvd_init. Returns 0, or what hvd_init would fail
 * with. */
int hvd_start_describe(char *text, size_t size);

/* The versions that GPU tensors would use on this machine: of CUDA, by its driver (12040
 * is 12.4), and of NCCL (21803 is 2.18.3). 0: none can be used. They work before
 * hvd_init. */
int hvd_cuda_version(void);
int hvd_nccl_version(void);

/* The same as text of at most size bytes with the final 0: files, problems, the GPUs for
 * which there are kernels, and whether UCX accepts GPU memory. To find that out it opens
 * the network, as a job over several nodes does, and closes it again, which takes time.
 * Returns 0, or HVD_ERR_UNSUPPORTED: GPU tensors cannot be used. */
int hvd_gpu_describe(char *text, size_t size);

size_t hvd_dtype_bytes(enum hvd_dtype dtype); /* 0: there is no such dtype */
const char *hvd_dtype_name(enum hvd_dtype dtype); /* Horovod's names: "float32" */

#ifdef __cplusplus
}
#endif

#endif
