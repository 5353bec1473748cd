/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run, shared by the files run*.c. */
#ifndef HVD_RUN_STATE_H
#define HVD_RUN_STATE_H

#include "collectives/execute/op_queue.h"
#include "collectives/execute/run.h"
#include "collectives/execute/segments.h"
#include "collectives/reduce/reduce.h"

struct hvd_run {
    struct hvd_team *team;
    enum hvd_kind kind;
    struct hvd_entry **entries;
    int entry_count;
    struct hvd_segments input;
    struct hvd_segments output;
    struct hvd_reduction reduction;
    double
        prescale; /* of elements as they are read; that of 16-bit floats is in reduction */
    const void **sources; /* [max(local size, nodes)] */
    struct hvd_shared_place *places; /* [entry_count] if all are shared; run_shared.c */

    char *stand_in; /* input and output of what a joined rank lacks, for others to read */
    bool is_done;
    struct hvd_schedule *schedule; /* NULL: nothing to move, or Adasum is computing */
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
    bool is_shared; /* all tensors of all ranks lie in memory of hvd_shared_alloc */
    bool is_computing; /* adasum or convert works, and no schedule runs */
};

/* What all queries of a run have in common. */
struct hvd_schedule_query hvd_run_query(const struct hvd_run *run,
                                        enum hvd_collective collective);

/* Memory for what the library gives out; 0 or HVD_ERR_NOMEM. */
int hvd_run_allocate(struct hvd_entry *entry, int64_t rows);

/* Of its tensor. */
int64_t hvd_run_entry_bytes(const struct hvd_entry *entry);

/* The current schedule has ended: plans the next one or sets is_computing, if there is
 * more to do; else sets is_done. */
int hvd_run_next_schedule(struct hvd_run *run);

#endif
