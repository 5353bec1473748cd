/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a GPU batch: the state that its phases share, and a part for each file that
 * implements one. Only that file changes its part. gpu_run.c owns the rest. */
#ifndef HVD_GPU_RUN_STATE_H
#define HVD_GPU_RUN_STATE_H

#include "collectives/gpu/gpu_host_gather.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/gpu/gpu_packing_limit.h"
#include "collectives/gpu/gpu_pipeline.h"
#include "collectives/gpu/gpu_run.h"
#include "collectives/gpu/gpu_schedule.h"
#include "collectives/gpu/gpu_trace.h"

struct hvd_run;
struct hvd_team;

enum hvd_gpu_phase {
    HVD_GPU_AWAIT_TURN,
    HVD_GPU_RENDEZVOUS,
    HVD_GPU_COUNT, /* alltoall: the ranks exchange their splits */
    HVD_GPU_MEASURE, /* which tensors are packed */
    HVD_GPU_READY, /* a trial: until the input of this rank is complete */
    HVD_GPU_LINE_UP, /* a trial: until the input of all ranks is */
    HVD_GPU_FETCH, /* until the device has copied all tensors to the host */
    HVD_GPU_ON_HOST,
    HVD_GPU_PIPELINE, /* until the pipeline has submitted all work */
    HVD_GPU_LAUNCH, /* until the work is launched */
};

enum hvd_gpu_packing_stage {
    HVD_GPU_PACKING_ASK,
    HVD_GPU_PACKING_RUN,
    HVD_GPU_PACKING_TELL,
    HVD_GPU_PACKING_DONE,
};

/* gpu_packing.c: the measurement of which tensors are packed. */
struct hvd_gpu_packing {
    enum hvd_gpu_packing_stage stage;
    struct hvd_gpu_buffer *buffer; /* NULL: none; likewise timing */
    struct hvd_gpu_timing *timing;
    struct hvd_gpu_packing_times times; /* of this rank */
};

/* gpu_algorithm.c: the batch as a trial of an algorithm. Nothing runs beside it until it ends on
 * the device. */
struct hvd_gpu_trial_run {
    enum hvd_gpu_allreduce algorithm; /* AUTO: the batch is no trial */
    int64_t began_ns;
};

/* gpu_staging.c: the tensors in host memory. */
struct hvd_gpu_staging {
    struct hvd_gpu_shadow *shadows; /* [count] */
    struct hvd_entry **shadow_list;
    struct hvd_gpu_buffer *host;
    struct hvd_run *run; /* of phase ON_HOST */
};

struct hvd_gpu_run {
    struct hvd_gpu_runtime *gpu;
    struct hvd_team *team;
    struct hvd_batch *batch; /* not after hvd_gpu_run_forget */
    int64_t count; /* of tensors */
    enum hvd_gpu_phase phase;
    struct hvd_gpu_set *set; /* after RENDEZVOUS */
    bool has_turn;
    bool is_polling; /* counted in gpu->waiting */
    int64_t failed_ns; /* when the network failed; 0: it has not */
    struct hvd_error failure;

    struct hvd_gpu_host_gather gather; /* of the phase that needs one */
    struct hvd_gpu_job job; /* MEASURE, READY, FETCH, LAUNCH without pipeline */
    struct hvd_gpu_pipeline *pipeline; /* PIPELINE, and LAUNCH after it */
    struct hvd_gpu_trace *trace; /* moved to the mark of the last work */

    struct hvd_gpu_offer *offer; /* gpu_rendezvous.c: of this rank */
    struct hvd_gpu_trial_run trial;
    struct hvd_gpu_packing packing;
    int64_t *counts; /* gpu_launch.c, alltoall: [2 * size] rows sent, rows received */
    struct hvd_gpu_staging staging;
};

/* gpu_rendezvous.c: begins, and ends with run->set. */
int hvd_gpu_rendezvous_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_rendezvous_end(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_algorithm.c: whether the batch is reduced hierarchically; makes run->pipeline for that. */
bool hvd_gpu_is_hierarchical(const struct hvd_gpu_run *run);
int hvd_gpu_hierarchical_pipeline(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_algorithm.c: whether the batch is to be a trial, or is one; waits for this rank's input; for
 * that of all; chooses the algorithm; the clock starts anew; the device has completed it. */
bool hvd_gpu_trial_wanted(const struct hvd_gpu_run *run);
bool hvd_gpu_trial_runs(const struct hvd_gpu_run *run);
int hvd_gpu_trial_ready(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_trial_line_up(struct hvd_gpu_run *run, struct hvd_error *err);
void hvd_gpu_trial_begin(struct hvd_gpu_run *run);
void hvd_gpu_trial_restart(struct hvd_gpu_run *run);
void hvd_gpu_trial_end(struct hvd_gpu_run *run);

/* gpu_packing.c: whether it must be measured first which tensors are packed; begins; returns 0 when
 * that is over, HVD_INPROGRESS or a failure; frees what is left of it. */
bool hvd_gpu_packing_wanted(const struct hvd_gpu_run *run);
int hvd_gpu_packing_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_packing_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err);
void hvd_gpu_packing_finish(struct hvd_gpu_run *run);

/* gpu_launch.c: whether NCCL can do the batch; launches it. Before that, of an alltoall, the ranks
 * exchange how many rows each sends. */
bool hvd_gpu_launch_fits(const struct hvd_gpu_run *run);
int hvd_gpu_launch(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_alltoall_count(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_alltoall_count_end(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_launch.c: submits the steps of run->job, with a trace. comm: NULL without collectives. */
int hvd_gpu_launch_submit(struct hvd_gpu_run *run, enum hvd_gpu_queue queue,
                          struct hvd_gpu_comm *comm, struct hvd_error *err);

/* gpu_launch.c: takes memory for packed tensors, if there is none yet and so much can be had, before the
 * training has filled the device. */
int hvd_gpu_launch_reserve(struct hvd_gpu_run *run, size_t bytes, struct hvd_error *err);

/* gpu_launch.c: where so many rows of a result go: the memory that the caller gave, or else device
 * memory of the library's. A rank whose caller gave too little takes the latter, too, so that it stays
 * in step with the others, and its entry fails when the device is done. *memory is NULL for 0 rows of
 * the library's. */
int hvd_gpu_launch_place(struct hvd_gpu_run *run, struct hvd_entry *entry, int64_t rows,
                         char **memory, struct hvd_error *err);

/* gpu_staging.c: makes run->pipeline for an allreduce through host memory. Other collectives: the
 * work that copies to the host; the run there; the work that copies back. */
int hvd_gpu_staging_pipeline(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_staging_fetch(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_staging_run(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_staging_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err);
int hvd_gpu_staging_return(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_staging.c, as hvd_gpu_run_forget: results on the host may be leaked. Frees it all. */
void hvd_gpu_staging_forget(struct hvd_gpu_run *run, bool leaks);
void hvd_gpu_staging_finish(struct hvd_gpu_run *run);

#endif
