/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run, shared by the files run*.c. */
#ifndef HVD_RUN_STATE_H
#define HVD_RUN_STATE_H

#include "collectives/run/op_queue.h"
#include "collectives/run/run.h"
#include "collectives/run/segments.h"
#include "collectives/reduce/reduce.h"

/* How the tensors of a batch are reduced and transferred. */
struct hvd_run_terms {
    enum hvd_dtype dtype;
    int32_t wire;
    enum hvd_op op;
    double prescale;
    double postscale;
};

struct hvd_run {
    struct hvd_team *team;
    enum hvd_kind kind;
    struct hvd_run_terms terms;
    struct hvd_entry **entries;
    int entry_count;
    int64_t bytes; /* bytes of all tensors of an allreduce */
    struct hvd_segments input;
    struct hvd_segments output;
    struct hvd_reduction reduction;
    /* factor of elements as they are read; 1 for 16-bit floats, which reduction.prescale
     * multiplies later */
    double prescale;
    const void **sources; /* [max(local size, nodes)] */

    char *zeros; /* input and output of a joined rank, if others access them in place */
    bool is_done;
    struct hvd_schedule *schedule; /* NULL: nothing to move, or Adasum is computing */
    const struct hvd_schedule_facts *facts; /* facts of the schedule */
    const struct hvd_step *steps;
    int64_t tick;
    int step;
    int step_count;
    struct hvd_op_queue sends;
    struct hvd_op_queue recvs;

    /* [size + 1] offsets in the output: allgather, alltoall, gather, scatter */
    int64_t *blocks;
    int64_t *send; /* [size + 1] offsets in the input: alltoall, gather, scatter */
    /* Alltoall runs two schedules: in the first, the ranks tell each other how many rows
     * they send. */
    int64_t *rows_out; /* [size] rows for each rank */
    int64_t *rows_in; /* [size] rows from each rank */
    int64_t max_block; /* rows of the longest block */
    bool is_counting; /* the first of the two schedules is running */
    struct hvd_run_adasum *adasum; /* run_adasum.c; NULL in other runs */
    struct hvd_run_convert *convert; /* run_convert.c; NULL in other runs */
    bool is_computing; /* adasum or convert is computing; no schedule runs meanwhile */
};

/* --- run_memory.c --- */

/* Allocates at least `bytes`, and at least 1 byte, aligned to 64 bytes or more. The
 * caller frees it with free(). Returns NULL if memory is out. */
void *hvd_run_memory(size_t bytes);

/* --- run_steps.c: the schedule and its steps --- */

/* Creates the run's next schedule. */
int hvd_run_schedule(struct hvd_run *run, const struct hvd_schedule_query *query,
                     struct hvd_error *err);

/* Executes steps of the current schedule, like hvd_run_progress. Returns 0 when the
 * schedule has ended, HVD_INPROGRESS also if a step has to wait (after a rank has died,
 * until that is reported). */
int hvd_run_steps(struct hvd_run *run, int64_t *work, bool *moved);

/* --- run_adasum.c: a batch with the op Adasum, in several schedules --- */

/* Prepares the first schedule. Allocates one float per element of the batch, or one
 * double for float64. The number of ranks must be a power of two. Returns 0 or a failure;
 * destroy frees its memory in either case. */
int hvd_run_adasum_prepare(struct hvd_run *run, struct hvd_error *err);

/* Goes on after the current schedule or computation has ended, as next_schedule does for
 * other runs. */
int hvd_run_adasum_next(struct hvd_run *run);

/* Computes, while run->is_computing, until it has touched about *work bytes, and
 * subtracts the bytes touched from *work. Returns 0 when the computation is done, else
 * HVD_INPROGRESS. Sets *moved if it computed anything. */
int hvd_run_adasum_compute(struct hvd_run *run, int64_t *work, bool *moved);

void hvd_run_adasum_destroy(struct hvd_run_adasum *adasum); /* NULL is fine */

/* --- run_convert.c: float32 tensors that travel as 16-bit floats --- */

/* Takes over input and output of the run, which are the tensors, and replaces them for
 * the schedule by one array, half as large. Returns 0 or HVD_ERR_NOMEM; destroy frees its
 * memory in either case. */
int hvd_run_convert_prepare(struct hvd_run *run);

/* Borrows the segments of the tensors, which convert has replaced in the run. */
void hvd_run_convert_tensors(struct hvd_run_convert *convert, struct hvd_segments **input,
                             struct hvd_segments **output);

/* Whether the array is small enough to be kept for the next batch. */
bool hvd_run_convert_is_small(const struct hvd_run_convert *convert);

/* Go on after the current schedule or conversion has ended, and restart the run as
 * hvd_run_again does. */
void hvd_run_convert_next(struct hvd_run *run);
void hvd_run_convert_again(struct hvd_run *run);

/* Converts elements. Arguments and results are those of hvd_run_adasum_compute. */
int hvd_run_convert_compute(struct hvd_run *run, int64_t *work, bool *moved);

/* Makes the run leave the tensors alone. The array stays: other ranks may still read it,
 * and messages that arrive later may write to it. */
void hvd_run_convert_forget(struct hvd_run_convert *convert);

void hvd_run_convert_destroy(struct hvd_run_convert *convert); /* NULL is fine */

#endif
