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
 *     hvd_init(&error);                     // on every rank; 0, or error.text says why not
 *     compute(values, hvd_rank(), hvd_size());
 *     hvd_allreduce_start(&tensor, 1, HVD_AVERAGE, 1.0, 1.0, HVD_SET_GLOBAL, &request,
 *                         &error);
 *     compute_something_else();             // hvd works on it meanwhile
 *     hvd_wait(request, &error);            // now values is the average over all ranks
 *     hvd_request_free(request);
 *     hvd_shutdown();
 *
 *     cc train.c $(pkg-config --cflags --libs hvd) -o train
 *     hvdrun -np 4 ./train                  # or: srun --hvd ./train, mpirun -np 4 ./train
 *
 * A whole program, which looks at what each function returns: contrib/examples/fit/fit.c.
 *
 * Requests: a hvd_*_start function hands tensors over and returns at once; hvd_wait or
 * hvd_test tells the end; hvd_request_free frees what was returned. All ranks of the process
 * set start the same requests, in any order: they are matched by the names of their tensors.
 * A name may be used again when the request before has ended. What is under way at the same
 * time is run together where that is faster: start all there is, then wait.
 *
 * Errors: a function that can fail returns 0, or a negative enum hvd_status (hvd_status.h) and
 * then a sentence for the user in err, which may be NULL. Of a request:
 *   HVD_ERR_ARG, _UNSUPPORTED, _STATE, _NOMEM from a start function: nothing was submitted;
 *     other ranks that were right wait for this one
 *   HVD_ERR_MISMATCH: the ranks disagree about this request (shapes, types, ...); it fails on
 *     all of them, with the same text, and the job goes on
 *   HVD_ERR_PEER, _NET, _SYS, _TIMEOUT, and _NOMEM later on: the job is over. Every pending
 *     and later request of every rank fails; the text names the rank that is to blame. What is
 *     left to do is hvd_shutdown
 *   HVD_ERR_SHUTDOWN: some rank has called hvd_shutdown
 *
 * Memory: input and output belong to the caller and stay where they are, untouched, until
 * hvd_wait or hvd_test reports the end, be it a failure. Everything else that a start function
 * is given (names, shapes, splits, lists) is copied.
 *
 * GPUs: input and output may be memory of a CUDA device, one for each process; then all ranks'
 * are. The collective waits for the caller's stream, and the caller's stream can be made to wait
 * for the collective (hvd_wait_on), so that no thread waits for the device. hvd_wait and hvd_test
 * tell when the device is done. What the library allocates on a device is handed over by
 * hvd_request_copy. Tensors go by NCCL where all ranks of the process set have it, else through
 * host memory. NCCL rounds 16-bit sums as it goes, and does not promise the same bits each time.
 *
 * Threads: any thread may call any function at any time; hvd_init and hvd_shutdown wait for
 * each other. One request is waited for, read and freed by one thread. A forked child is not a
 * rank: all that needs the job fails there with HVD_ERR_STATE. Results do not depend on a thread's
 * floating-point environment (rounding, flush to zero, traps), and every call leaves it as it was.
 *
 * Settings are environment variables, read by hvd_init: Horovod's (HOROVOD_FUSION_THRESHOLD
 * and so on) and hvd's own (HVD_*). */
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
    HVD_BOOL, /* one byte, 0 or 1; Sum and Max are "or", Product and Min are "and" */
    HVD_BFLOAT16, /* from here on Horovod has no number */
    HVD_UINT32,
    HVD_UINT64,
    HVD_DTYPE_COUNT
};

enum hvd_op {
    HVD_AVERAGE, /* Sum / size, integers truncated toward zero; not for bool */
    HVD_SUM,
    HVD_ADASUM, /* allreduce of floats on a power of two of ranks: see there */
    HVD_MIN, /* NaN if any rank has NaN; so Max */
    HVD_MAX,
    HVD_PRODUCT,
    HVD_OP_COUNT
};

enum {
    HVD_DEVICE_CPU = -1, /* else the index of a CUDA device */
    HVD_SET_GLOBAL = 0, /* the process set of all ranks */
    HVD_MAX_DIMS = 64,
};

/* A dense row-major tensor. Zero elements are fine; ndim 0 is one element. */
struct hvd_tensor {
    /* What the ranks match it by; one at a time in a process set. Names that begin with
     * "hvd." are the library's own. */
    const char *name;
    const void *input;
    void *output; /* same as input: in place; not looked at where the library allocates */
    const int64_t *shape; /* [ndim], of the input */
    int ndim;
    enum hvd_dtype dtype;
    int device; /* HVD_DEVICE_CPU, or the number of a CUDA device; see "GPUs" below */
    /* The type of its elements on the way between ranks. 0: their own. HVD_FLOAT16, HVD_BFLOAT16:
     * see hvd_allreduce_start, which alone takes one. The same on all ranks. */
    int wire;
    /* On a GPU: when this CUDA stream (NULL: the default one) has come as far as it is now, the
     * input is there and the output may be written. */
    void *stream;
};

struct hvd_request; /* made by the start functions, freed by hvd_request_free */

/* --- life ------------------------------------------------------------------------------ */

/* Joins the job: all ranks that the launcher (srun --hvd, hvdrun, mpirun) started; a process
 * that was started alone is rank 0 of 1. Returns when all ranks are connected. A second call
 * does nothing. Fails within the start time limit (HVD_START_TIMEOUT seconds, default 60). */
int hvd_init(struct hvd_error *err);

/* As hvd_init, but the job is `count` ranks of those that the launcher started, and these alone
 * call it, all with the same list. In the job they are ranks 0 to count - 1 in the order of
 * the list. Jobs without a common rank may run side by side, and after hvd_shutdown a rank may
 * join others. HVD_ERR_ARG: this rank is not in the list, or one does not exist or is in it
 * twice. */
int hvd_init_ranks(const int *ranks, int count, struct hvd_error *err);

/* Leaves the job, and ends it for all: pending and later requests of all ranks fail with
 * HVD_ERR_SHUTDOWN; what was already running ends first. Every rank has to call this: one that
 * ends without counts as dead. Requests are freed as ever, before or afterwards. hvd_init may
 * be called again when every rank has called this. Without hvd_init before, does nothing.
 * Returns 0. */
int hvd_shutdown(void);

/* 1 between hvd_init and hvd_shutdown, else 0. */
int hvd_is_initialized(void);

/* This rank's numbers; HVD_ERR_STATE before hvd_init. */
int hvd_rank(void); /* in the job, from 0 */
int hvd_size(void);
int hvd_local_rank(void); /* on its node, from 0: the index of its GPU */
int hvd_local_size(void);
int hvd_cross_rank(void); /* index of this node among those that have this local rank */
int hvd_cross_size(void);
int hvd_is_homogeneous(void); /* 1 when all nodes have equally many ranks, else 0 */

/* The host name of a rank, valid until hvd_shutdown; NULL when there is no such rank. */
const char *hvd_host(int rank);

/* --- collectives ------------------------------------------------------------------------
 * Among the ranks of a process set: HVD_SET_GLOBAL, all of the job, or one that
 * hvd_set_add_start made. Each returns 0 and a request, which the caller frees, or a negative
 * status and no request. `count` tensors of one call are run and end together. */

/* output[i] = post * op over ranks of (pre * input[i]), same shape on all ranks; 1.0 and 1.0
 * where nothing is to be scaled. Average is post * Sum / size; size is that of the process set, also
 * after some have joined. Integers: sums and products wrap; where pre or post is not 1, what it
 * makes is computed in double, which holds 53 bits, and truncated toward zero: pre * input[i], and
 * post * Sum / size at once; without post an average is divided exactly, in all bits, and truncated
 * toward zero. 16-bit floats are scaled and summed in float, and rounded once. Every rank gets the
 * same bits, and gets them again in a later run with the same layout.
 *
 * Adasum pairs ranks 0 and 1, 2 and 3, ..., then the results of the pairs, and so on; of a
 * pair a, b it makes a * (1 - a.b / 2|a|^2) + b * (1 - a.b / 2|b|^2), where a factor is 1 if
 * its vector is 0: the sum of orthogonal vectors, the mean of equal ones. Each tensor is a
 * vector of its own. Products are summed in double; 16-bit floats are rounded once.
 *
 * A float32 tensor may travel as HVD_FLOAT16 or HVD_BFLOAT16 (tensor.wire), with Sum and Average:
 * half as many bytes go between ranks. Then pre * input[i] is rounded to that type (to nearest,
 * ties to even; what is too large becomes infinite, NaN stays NaN), post * op over ranks is made
 * as of a tensor of that type, and each rank's output, its own too, is that as float32. On the
 * host that takes memory for half of the tensors' bytes while it runs. On GPUs the kernels do it,
 * where the sum itself is made in that type: float16 by NCCL, and multiplied by post, of an average
 * by 1/size, behind it; bfloat16 is multiplied before. HVD_ERR_ARG for other dtypes and ops. */
int hvd_allreduce_start(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                        double prescale, double postscale, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Concatenates along dimension 0, which may differ per rank, in the order of the ranks. The
 * library allocates the output: hvd_request_take. At least one dimension. */
int hvd_allgather_start(const struct hvd_tensor *tensors, int count, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Copies root's input to every output, also its own; root is a rank of the job, in any set.
 * Other ranks' input is not looked at. Same shape on all ranks. */
int hvd_broadcast_start(const struct hvd_tensor *tensor, int root, int set,
                        struct hvd_request **request, struct hvd_error *err);

/* Sends splits[i] rows of dimension 0 to the i-th rank of the set, one after the other;
 * nsplits is the size of the set. splits NULL, nsplits 0: equal parts. The library allocates
 * the output (hvd_request_take), rows in the order of the ranks they are from, and counts them
 * (hvd_request_splits). */
int hvd_alltoall_start(const struct hvd_tensor *tensor, const int32_t *splits,
                       int nsplits, int set, struct hvd_request **request,
                       struct hvd_error *err);

/* Reduces as allreduce does and leaves each rank its part of dimension 0: the i-th rank of the
 * set gets rows / size rows, the first rows % size ranks one more. Sum and Average only. output
 * has room for this rank's rows and is apart from input. */
int hvd_reducescatter_start(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                            double prescale, double postscale, int set,
                            struct hvd_request **request, struct hvd_error *err);

/* Ends when every rank of the set has started it. */
int hvd_barrier_start(int set, struct hvd_request **request, struct hvd_error *err);

/* This rank has no more data: until all ranks have joined, it takes part in the allreduces of
 * the global process set with zeros; barriers do without it. Other collectives of that set, Min,
 * Max and Product, and adding and removing process sets fail meanwhile. What this rank itself
 * starts in that set before its join has ended fails here, with HVD_ERR_ARG. Ends when all ranks
 * have joined; hvd_request_last_rank tells who was last. */
int hvd_join_start(struct hvd_request **request, struct hvd_error *err);

/* --- process sets ----------------------------------------------------------------------
 * A process set is some of the job's ranks, with collectives of their own; sets may overlap
 * and run at the same time. Set 0 is the global one. All ranks of the job, members or not,
 * add and remove sets, in the same order. */

/* Adds a set of `count` ranks, in any order; hvd_request_set tells its number. The ranks must
 * agree about its members; a set with the same members must not exist. */
int hvd_set_add_start(const int *ranks, int count, struct hvd_request **request,
                      struct hvd_error *err);

/* Removes a set. Ends when all ranks have asked for it and their collectives on it are done. */
int hvd_set_remove_start(int set, struct hvd_request **request, struct hvd_error *err);

/* Of a set that this rank has seen added: its size; this rank's index in it, or
 * HVD_ERR_UNSUPPORTED when it is not a member; its ranks, ascending ([size], the caller's).
 * HVD_ERR_ARG when there is no such set. */
int hvd_set_size(int set);
int hvd_set_rank(int set);
int hvd_set_ranks(int set, int *ranks);

/* The number of sets, the global one included; ids, [that number], gets theirs. */
int hvd_set_count(void);
int hvd_set_ids(int *ids);

/* --- requests --------------------------------------------------------------------------- */

/* 0: done; HVD_INPROGRESS; or the failure. Does not block; may do some of the work. May be
 * called again after the end, with the same result; so hvd_wait. */
int hvd_test(struct hvd_request *request, struct hvd_error *err);

/* Blocks until done; returns 0 or the failure. The waiting thread may do the work. */
int hvd_wait(struct hvd_request *request, struct hvd_error *err);

/* As hvd_wait, but gives up after timeout_ms milliseconds (negative: never; 0: at once,
 * without driving) and returns HVD_INPROGRESS; for callers that have to look at signals now
 * and then. */
int hvd_wait_for(struct hvd_request *request, int timeout_ms, struct hvd_error *err);

/* As hvd_wait_for, but for tensors on GPUs: returns 0 as soon as the request is on the GPU's own
 * streams, and from then on the caller's stream waits for its end. A failure of the device or of
 * another rank after that comes with a later call. Of host tensors: as hvd_wait_for. */
int hvd_wait_on(struct hvd_request *request, void *stream, int timeout_ms,
                struct hvd_error *err);

/* Rows (dimension 0) of the output that the library allocated for tensor `index` (from 0) of an
 * allgather or alltoall on a GPU, after hvd_wait_on or the end; and a copy of it to memory of the
 * device, on the stream, which waits for the end itself. Else HVD_ERR_STATE. */
int hvd_request_rows(struct hvd_request *request, int index, int64_t *rows);
int hvd_request_copy(struct hvd_request *request, int index, void *output, void *stream,
                     struct hvd_error *err);

/* Hands over the output that the library allocated for tensor `index` (from 0) of a finished
 * allgather or alltoall. *data (aligned to 64 bytes, NULL if empty) is the caller's, to end
 * with hvd_free; *rows is its dimension 0, the others are those of the input. Once per tensor.
 * HVD_ERR_STATE while the request is under way, has failed, was on a GPU, or was another one. */
int hvd_request_take(struct hvd_request *request, int index, void **data, int64_t *rows);

/* Rows that came from each rank of a finished alltoall, on a GPU also after hvd_wait_on; splits has
 * room for one number per rank of the set. HVD_ERR_STATE as above. */
int hvd_request_splits(struct hvd_request *request, int32_t *splits);

/* Of a finished hvd_join_start: the rank that joined last. Of a finished hvd_set_add_start: the
 * number of the set. Else HVD_ERR_STATE. */
int hvd_request_last_rank(struct hvd_request *request);
int hvd_request_set(struct hvd_request *request);

/* Waits if need be, but not for what a stream waits for; then frees. NULL is fine. */
void hvd_request_free(struct hvd_request *request);

void hvd_free(void *data); /* what hvd_request_take handed over; NULL is fine */

/* --- shared memory ---------------------------------------------------------------------
 * Tensors that live where all ranks of a node can map them: an allreduce in place adds
 * them up there, without a copy to anywhere, if all ranks gave such memory. Of two ranks
 * of one node that takes a fifth to a half of the time. Elsewhere it is memory like any
 * other: several nodes, one rank, a wire type, a prescale of other than 16-bit floats, less
 * than 16 KiB, ranks that must not reach each other (HVD_SINGLE_COPY=0). Take few pieces,
 * for many tensors each: a rank keeps 64 of each other one mapped. */

/* Zeroed memory, on a page, that the caller ends with hvd_shared_free. It belongs to the
 * process and outlives the job, so before hvd_init and after hvd_shutdown both may be
 * called, too; a forked child has the same memory. If another rank was stopped while it added up
 * there and the job failed, the memory stays and is the process's alone: requests of later jobs
 * take it as any other. Counts once in the memory of the node; tools
 * that add up what each process maps count it once for each rank. Returns 0,
 * HVD_ERR_NOMEM or HVD_ERR_SYS. Any thread. */
int hvd_shared_alloc(size_t bytes, void **out, struct hvd_error *err);

/* When no request uses it any more. NULL is fine. */
void hvd_shared_free(void *memory);

/* --- timeline ----------------------------------------------------------------------------
 * What happened to each tensor and when, in a file for chrome://tracing and Perfetto, which is
 * good JSON at any moment. HOROVOD_TIMELINE=FILE records from hvd_init on. */

/* Rank 0 records to path from now on; other ranks may call it, and it does nothing there. What
 * is recorded to the same path already goes on, what goes to another is ended. mark_cycles:
 * also the rounds of agreement. HVD_ERR_ARG when HOROVOD_TIMELINE was not set at hvd_init;
 * DYNAMIC is for those who only want these functions. HVD_ERR_SHUTDOWN when the job is being
 * left. A file that cannot be written is an error in the log and no failure here: training goes
 * on without. err may be NULL. */
int hvd_timeline_start(const char *path, int mark_cycles, struct hvd_error *err);

/* Ends the recording; on rank 0 the file is complete on return. Without one it does nothing. */
int hvd_timeline_stop(struct hvd_error *err);

/* --- elastic jobs ------------------------------------------------------------------------
 * A job that was started with srun --hvd=elastic or hvdrun --min-np N survives its ranks. When one
 * dies, requests of the others fail as ever; they call hvd_shutdown and hvd_init, which returns
 * with the ranks that are left, numbered anew: those that have called hvd_elastic_ready first, in
 * their old order. New ranks come in the same way, when all others have done so. */

/* 1: the job is elastic, else 0; HVD_ERR_STATE before hvd_init. */
int hvd_elastic(void);

/* 1: new ranks wait until all others have called hvd_shutdown and hvd_init; else 0. Ranks may
 * learn it at different times. HVD_ERR_STATE as above. */
int hvd_elastic_updates(void);

/* This rank has the state of the training, be it the beginning's, and can give it to others. Once
 * any rank has said so, hvd_init fails with HVD_ERR_STATE where none that has is left. Returns 0 or
 * HVD_ERR_STATE. */
int hvd_elastic_ready(void);

/* --- facts ------------------------------------------------------------------------------ */

const char *hvd_version(void); /* "0.1.0" */

/* What GPU tensors would use here, found now: the driver's version of CUDA (12040 is 12.4), NCCL's
 * (21803 is 2.18.3); 0: there is none that is usable. Need no hvd_init. */
int hvd_cuda_version(void);
int hvd_nccl_version(void);

/* Says the same in lines of text, with the files, with what is wrong, for which GPUs there are
 * kernels, and whether UCX takes GPU memory: at most size bytes with the 0 at the end. For that last
 * it opens the network, as a job over several nodes does, and closes it again, which takes time.
 * Returns 0, or HVD_ERR_UNSUPPORTED when GPU tensors cannot be used. */
int hvd_gpu_describe(char *text, size_t size);

size_t hvd_dtype_bytes(enum hvd_dtype dtype); /* 0 when there is no such dtype */
const char *hvd_dtype_name(enum hvd_dtype dtype); /* Horovod's names: "float32" */

#ifdef __cplusplus
}
#endif

#endif
