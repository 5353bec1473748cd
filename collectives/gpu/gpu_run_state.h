/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run of a GPU batch, shared by its phases (gpu_run.c), meeting
 * (gpu_meet.c), and the ways by NCCL (gpu_launch.c, gpu_nodes.c) and through host memory
 * (gpu_stage.c). */
#ifndef HVD_GPU_RUN_STATE_H
#define HVD_GPU_RUN_STATE_H

#include "collectives/execute/run.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/gpu/gpu_packing_limit.h"
#include "collectives/gpu/gpu_pipe.h"
#include "collectives/gpu/gpu_plan.h"
#include "collectives/gpu/gpu_run.h"
#include "collectives/gpu/gpu_trace.h"

enum hvd_gpu_phase {
    HVD_GPU_AWAIT_TURN,
    HVD_GPU_MEET,
    HVD_GPU_COUNT,
    HVD_GPU_MEASURE, /* which tensors are packed; gpu_packing.c */
    HVD_GPU_READY, /* a trial: until the input is there */
    HVD_GPU_LINE_UP, /* a trial: until it is there on all ranks */
    HVD_GPU_FETCH, /* until the device has come to mark */
    HVD_GPU_ON_HOST,
    HVD_GPU_PIPE, /* until all of pipe is handed to the launcher */
    HVD_GPU_LAUNCH, /* until the work is on its stream */
};

enum hvd_gpu_measure_stage {
    HVD_GPU_MEASURE_ASK,
    HVD_GPU_MEASURE_RUN,
    HVD_GPU_MEASURE_TELL,
    HVD_GPU_MEASURED,
};

/* Of MEASURE. */
struct hvd_gpu_measure {
    enum hvd_gpu_measure_stage stage;
    struct hvd_gpu_room *room; /* NULL: none; so timing */
    struct hvd_gpu_timing *timing;
    struct hvd_gpu_packing_times times; /* what this rank tells the others */
};

struct hvd_gpu_run {
    struct hvd_gpu *gpu;
    struct hvd_team *team;
    struct hvd_batch *batch; /* not after hvd_gpu_run_forget */
    int64_t count; /* its tensors */
    enum hvd_gpu_phase phase;
    struct hvd_gpu_peers *peers; /* from MEET on */
    bool has_turn;
    bool is_polling; /* counted in gpu->waiting */

    /* A collective of the ranks' hosts under way: MEET, COUNT, MEASURE, LINE_UP, ON_HOST. */
    struct hvd_run *inner;
    struct hvd_entry gathered; /* of all but ON_HOST */
    int64_t *rows; /* [size] */
    void *shown; /* of MEET: what this rank shows the others */

    struct hvd_gpu_measure measure;

    int64_t *counts; /* [2 * size] rows sent, rows that come: alltoall */

    struct hvd_gpu_job job; /* under way: MEASURE, READY, FETCH, LAUNCH without pipe */
    struct hvd_gpu_pipe *pipe; /* PIPE, and LAUNCH then */
    struct hvd_gpu_trace *trace; /* until the mark of the last work has it */

    /* Through host memory: the tensors there. */
    struct hvd_entry *shadows; /* [count] */
    struct hvd_entry **shadow_list;
    struct hvd_gpu_room *host;

    /* A trial: one at a time, with nothing beside it, up to its end on the device. */
    enum hvd_gpu_allreduce tried; /* AUTO: it is none */
    int64_t tried_ns; /* when it began */

    int64_t failed_ns; /* when the network failed; 0: it has not */
    struct hvd_error failure;
};

/* Whether the batch goes by NCCL. */
bool hvd_gpu_run_fits(const struct hvd_gpu_run *run);

/* Hands the steps of run->job to the launcher. comm: NULL when they are no collectives. */
int hvd_gpu_run_submit(struct hvd_gpu_run *run, enum hvd_gpu_queue queue,
                       struct hvd_gpu_comm *comm, struct hvd_error *err);

/* While it polls, the engine looks at the device again and again. */
void hvd_gpu_run_poll(struct hvd_gpu_run *run, bool polls);

/* Others may begin: what this one puts on streams is there, or goes no further by NCCL. Nothing
 * when it has no turn. */
void hvd_gpu_run_pass_turn(struct hvd_gpu_run *run);

/* Every rank of the team gets all ranks' bytes: run->gathered.result, when run->inner is
 * done. */
int hvd_gpu_run_gather(struct hvd_gpu_run *run, const void *data, size_t bytes,
                       struct hvd_error *err);

void hvd_gpu_run_end_gather(struct hvd_gpu_run *run);

/* Moves run->inner on; 0 when it is done. */
int hvd_gpu_run_inner(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                      struct hvd_error *err);

/* Device memory for what the library allocates. */
int hvd_gpu_run_allocate(struct hvd_gpu_run *run, struct hvd_entry *entry, int64_t rows,
                         struct hvd_error *err);

/* gpu_launch.c: the work of NCCL; before it, of an alltoall, the ranks tell each other
 * how many rows come. */
int hvd_gpu_launch(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_count(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_count_end(struct hvd_gpu_run *run, struct hvd_error *err);

/* What the batch comes to for NCCL; without memory, and rows of an alltoall before they
 * are known. */
struct hvd_gpu_plan hvd_gpu_run_plan(const struct hvd_gpu_run *run);

/* gpu_packing.c. Whether it has to be measured first which tensors are packed; begins;
 * returns 0 when that is over, else HVD_INPROGRESS or a failure; gives back what a run
 * has for that. */
bool hvd_gpu_packing_wanted(const struct hvd_gpu_run *run);
int hvd_gpu_packing_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_packing_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err);
void hvd_gpu_packing_finish(struct hvd_gpu_run *run);

/* gpu_meet.c: begins, and ends with run->peers. */
int hvd_gpu_meet(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_meet_end(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_nodes.c. Whether the batch is to be a trial; its phases; its end. */
bool hvd_gpu_trial_wanted(const struct hvd_gpu_run *run);
int hvd_gpu_trial_ready(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_trial_line_up(struct hvd_gpu_run *run, struct hvd_error *err);
void hvd_gpu_trial_begin(struct hvd_gpu_run *run);
void hvd_gpu_trial_end(struct hvd_gpu_run *run);

/* Whether the batch is added up within nodes first; makes run->pipe for that. */
bool hvd_gpu_nodes_first(const struct hvd_gpu_run *run);
int hvd_gpu_nodes_pipe(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_stage.c: makes run->pipe for an allreduce through host memory. */
int hvd_gpu_stage_pipe(struct hvd_gpu_run *run, struct hvd_error *err);

/* Others: the work that fetches; the run on the host; the work that brings back. */
int hvd_gpu_stage_fetch(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_stage_run(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_stage_return(struct hvd_gpu_run *run, struct hvd_error *err);
void hvd_gpu_stage_leak(
    struct hvd_gpu_run *run); /* results that the host has are never freed */
void hvd_gpu_stage_finish(struct hvd_gpu_run *run);

#endif
