/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run, shared by the files run*.c. */
#ifndef HVD_RUN_STATE_H
#define HVD_RUN_STATE_H

#include "collectives/run/op_queue.h"
#include "collectives/run/run.h"
#include "collectives/run/segments.h"
#include "collectives/reduce/reduce.h"

/* How the tensors of a batch are added up, and how they travel. */
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
    int64_t bytes; /* of all tensors of an allreduce */
    struct hvd_segments input;
    struct hvd_segments output;
    struct hvd_reduction reduction;
    /* of elements as they are read; that of 16-bit floats is in reduction */
    double prescale;
    const void **sources; /* [max(local size, nodes)] */

    char *zeros; /* input and output of what a joined rank lacks, for others to read */
    bool is_done;
    struct hvd_schedule *schedule; /* NULL: nothing to move, or Adasum is computing */
    const struct hvd_schedule_facts *facts; /* of the schedule */
    const struct hvd_step *steps;
    int64_t tick;
    int step;
    int step_count;
    struct hvd_op_queue sends;
    struct hvd_op_queue recvs;

    int64_t *blocks; /* [size + 1] of the output: allgather, alltoall */
    int64_t *send; /* [size + 1] of the input: alltoall */
    /* Alltoall runs two schedules: first the ranks tell each other how many rows come. */
    int64_t *rows_out; /* [size] rows for each rank */
    int64_t *rows_in; /* [size] rows from each rank */
    int64_t max_block; /* rows */
    bool is_counting; /* the first of the two is running */
    struct hvd_run_adasum *adasum; /* run_adasum.c; NULL in other runs */
    struct hvd_run_convert *convert; /* run_convert.c; NULL in other runs */
    bool is_computing; /* adasum or convert works, and no schedule runs */
};

/* --- run_memory.c --- */

/* Memory of at least `bytes`, and at least 1 byte, aligned to 64 bytes or more; free ends
 * it. NULL without memory. */
void *hvd_run_memory(size_t bytes);

/* --- run_steps.c: the schedule and its steps --- */

/* Makes the run's next schedule by a query. */
int hvd_run_schedule(struct hvd_run *run, const struct hvd_schedule_query *query,
                     struct hvd_error *err);

/* Does one step. Returns 0, HVD_INPROGRESS when it has to wait, also for news of a rank
 * that has died, or a failure. */
int hvd_run_step(struct hvd_run *run, const struct hvd_step *step);

/* --- run_adasum.c: a batch with the op Adasum, in several schedules --- */

/* Prepares the first schedule; needs as much memory as the batch has elements, in float
 * or, for float64, in double. The number of ranks is a power of two. Returns 0 or
 * HVD_ERR_NOMEM; what was allocated ends with destroy. */
int hvd_run_adasum_prepare(struct hvd_run *run, struct hvd_error *err);

/* The current schedule has ended: as run.c does in other runs. */
int hvd_run_adasum_next(struct hvd_run *run);

/* While run->is_computing: computes until it has touched about *work bytes, which it
 * lowers by what it did. Returns 0 when that is done, else HVD_INPROGRESS. Sets *moved if
 * it did any. */
int hvd_run_adasum_compute(struct hvd_run *run, int64_t *work, bool *moved);

void hvd_run_adasum_destroy(struct hvd_run_adasum *adasum); /* NULL is fine */

/* --- run_convert.c: float32 tensors that travel as 16-bit floats --- */

/* Takes over input and output of the run, which are the tensors, and puts one array in
 * their place for the schedule to work on, half as large. Returns 0 or HVD_ERR_NOMEM;
 * what was allocated ends with destroy. */
int hvd_run_convert_prepare(struct hvd_run *run);

/* Borrows the tensors, which the schedule does not see. */
void hvd_run_convert_tensors(struct hvd_run_convert *convert, struct hvd_segments **input,
                             struct hvd_segments **output);

/* Whether the array is small enough to be kept for the next batch. */
bool hvd_run_convert_is_small(const struct hvd_run_convert *convert);

/* The current schedule has ended; and hvd_run_again of such a run. */
void hvd_run_convert_next(struct hvd_run *run);
void hvd_run_convert_again(struct hvd_run *run);

/* As hvd_run_adasum_compute. */
int hvd_run_convert_compute(struct hvd_run *run, int64_t *work, bool *moved);

/* The tensors are not touched any more. The array stays: others may still read it, and
 * messages that come later be written to it. */
void hvd_run_convert_forget(struct hvd_run_convert *convert);

void hvd_run_convert_destroy(struct hvd_run_convert *convert); /* NULL is fine */

#endif
