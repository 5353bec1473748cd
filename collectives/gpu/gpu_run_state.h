/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a GPU batch: state shared by its phases, and a part for each file that
 * implements a phase. Only that file changes its part; gpu_run.c owns the rest. */
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
    HVD_GPU_OPEN_INBOXES, /* prepares to reduce small batches by one kernel */
    HVD_GPU_REGISTER_WINDOW, /* registers memory for packed tensors with NCCL */
    HVD_GPU_MEASURE, /* measures which tensors are worth packing */
    HVD_GPU_READY, /* a trial: waits for this rank's input */
    HVD_GPU_LINE_UP, /* a trial: waits for the input of all ranks */
    HVD_GPU_FETCH, /* waits until the device has copied all tensors to the host */
    HVD_GPU_ON_HOST,
    HVD_GPU_PIPELINE, /* waits until the pipeline has submitted all work */
    HVD_GPU_LAUNCH, /* waits until the work is launched */
};

enum hvd_gpu_packing_stage {
    HVD_GPU_PACKING_ASK,
    HVD_GPU_PACKING_RUN,
    HVD_GPU_PACKING_TELL,
    HVD_GPU_PACKING_DONE,
};

/* gpu_packing.c: measures which tensors are worth packing. */
struct hvd_gpu_packing {
    enum hvd_gpu_packing_stage stage;
    /* this and timing: NULL if not allocated */
    struct hvd_gpu_buffer *buffer;
    struct hvd_gpu_timing *timing;
    struct hvd_gpu_packing_times times; /* the times of this rank */
};

enum hvd_gpu_window_stage {
    HVD_GPU_WINDOW_ASK,
    HVD_GPU_WINDOW_RUN,
    HVD_GPU_WINDOW_TELL,
    HVD_GPU_WINDOW_RENEW,
    HVD_GPU_WINDOW_DONE,
};

/* The state of its window that a rank tells to the others. */
struct hvd_gpu_window_word {
    int32_t state; /* enum hvd_gpu_window_state */
    char reason[200]; /* state FAILED */
    unsigned char id[HVD_GPU_ID_BYTES]; /* RENEW: of the next communicator, from rank 0 */
};

/* gpu_window.c: registers a window. */
struct hvd_gpu_window_run {
    enum hvd_gpu_window_stage stage;
    int size_class;
    struct hvd_gpu_window *window; /* the communicator owns it; NULL: not allocated */
    struct hvd_gpu_window_word word; /* of this rank */
    char reason[256]; /* why the ranks use no window */
};

enum hvd_gpu_inbox_stage {
    HVD_GPU_INBOX_ALLOCATE,
    HVD_GPU_INBOX_OFFER,
    HVD_GPU_INBOX_OPEN,
    HVD_GPU_INBOX_TELL,
    HVD_GPU_INBOX_DONE,
};

/* The facts about its inbox that a rank tells to the others. */
struct hvd_gpu_inbox_word {
    int32_t is_good;
    int32_t blocks;
    char reason[200]; /* not is_good */
    unsigned char handle[HVD_GPU_HANDLE_BYTES];
};

/* gpu_inbox.c: opens the inboxes. */
struct hvd_gpu_inbox_run {
    enum hvd_gpu_inbox_stage stage;
    struct hvd_gpu_inbox *inbox; /* the communicator owns it; NULL: not created */
    struct hvd_gpu_inbox_word word; /* of this rank */
};

/* gpu_algorithm.c: a batch used as a trial of an algorithm. Nothing else runs until the
 * device has completed it. */
struct hvd_gpu_trial_run {
    enum hvd_gpu_allreduce algorithm; /* UNSET if the batch is not a trial */
    int64_t began_ns;
};

/* gpu_staging.c: copies of the tensors in host memory. */
struct hvd_gpu_staging {
    struct hvd_gpu_shadow *shadows; /* [count] */
    struct hvd_entry **shadow_list;
    struct hvd_gpu_buffer *host;
    struct hvd_run *run; /* phase ON_HOST */
};

struct hvd_gpu_run {
    struct hvd_gpu_runtime *gpu;
    struct hvd_team *team;
    struct hvd_batch *batch; /* NULL after hvd_gpu_run_forget */
    int64_t count; /* number of tensors */
    enum hvd_gpu_phase phase;
    struct hvd_gpu_set *set; /* set after RENDEZVOUS */
    bool has_turn;
    bool is_polling; /* counted in gpu->waiting */
    int64_t failed_ns; /* when the network failed; 0 if it has not */
    struct hvd_error failure;

    struct hvd_gpu_host_gather gather; /* for the phases that exchange facts */
    /* used in MEASURE, READY, FETCH, and in LAUNCH without pipeline */
    struct hvd_gpu_job job;
    struct hvd_gpu_pipeline *pipeline; /* used in PIPELINE, and in LAUNCH after it */
    struct hvd_gpu_trace *trace; /* passed on to the mark of the last work */

    struct hvd_gpu_offer *offer; /* gpu_rendezvous.c: the offer of this rank */
    struct hvd_gpu_trial_run trial;
    struct hvd_gpu_packing packing;
    struct hvd_gpu_window_run window_run;
    struct hvd_gpu_inbox_run inbox_run;
    int64_t *counts; /* gpu_launch.c, alltoall: [2 * size] rows sent, rows received */
    struct hvd_gpu_staging staging;
};

/* gpu_rendezvous.c: begin starts the rendezvous; end makes run->set from its result. */
int hvd_gpu_rendezvous_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_rendezvous_end(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_algorithm.c: whether the batch is reduced hierarchically; creates run->pipeline for
 * that. */
bool hvd_gpu_is_hierarchical(const struct hvd_gpu_run *run);
int hvd_gpu_hierarchical_pipeline(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_algorithm.c: a trial.
 *
 *   wanted    counts the batch, and returns whether it should be a trial
 *   runs      whether the batch is a trial
 *   ready     begins to wait for this rank's input
 *   line_up   begins to wait for the input of all ranks
 *   begin     chooses the algorithm and starts the clock
 *   restart   restarts the clock
 *   end       stops the clock, when the device has completed the batch */
bool hvd_gpu_trial_wanted(struct hvd_gpu_run *run);
bool hvd_gpu_trial_runs(const struct hvd_gpu_run *run);
int hvd_gpu_trial_ready(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_trial_line_up(struct hvd_gpu_run *run, struct hvd_error *err);
void hvd_gpu_trial_begin(struct hvd_gpu_run *run);
void hvd_gpu_trial_restart(struct hvd_gpu_run *run);
void hvd_gpu_trial_end(struct hvd_gpu_run *run);

/* gpu_packing.c: the measurement of the packing limit.
 *
 *   wanted     whether it should run before this batch
 *   begin      starts it
 *   progress   returns 0 when it is done, HVD_INPROGRESS or a failure
 *   finish     frees its memory */
bool hvd_gpu_packing_wanted(const struct hvd_gpu_run *run);
int hvd_gpu_packing_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_packing_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err);
void hvd_gpu_packing_finish(struct hvd_gpu_run *run);

/* gpu_window.c: memory of NCCL for packed tensors.
 *
 *   wanted     whether to register a window before this batch
 *   begin      starts that
 *   progress   returns 0 when it is done, HVD_INPROGRESS or a failure */
bool hvd_gpu_window_wanted(const struct hvd_gpu_run *run);
int hvd_gpu_window_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_window_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                            struct hvd_error *err);

/* gpu_inbox.c: one kernel for a small batch.
 *
 *   fits       whether one kernel may reduce this batch: the same on all ranks
 *   wanted     whether to open the inboxes before this batch
 *   begin      starts that
 *   progress   returns 0 when it is done, HVD_INPROGRESS or a failure
 *   steps      appends the steps of a batch that fits, once the inboxes are open */
bool hvd_gpu_inbox_fits(const struct hvd_gpu_run *run);
bool hvd_gpu_inbox_wanted(const struct hvd_gpu_run *run);
int hvd_gpu_inbox_begin(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_inbox_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                           struct hvd_error *err);
void hvd_gpu_inbox_steps(const struct hvd_gpu_run *run, struct hvd_gpu_steps *steps);

/* gpu_launch.c: fits returns whether NCCL can do the batch; launch launches it. For an
 * alltoall the ranks first exchange how many rows each one sends: count begins that,
 * count_end uses the result. */
bool hvd_gpu_launch_fits(const struct hvd_gpu_run *run);
int hvd_gpu_launch(struct hvd_gpu_run *run, struct hvd_error *err);
/* For an allreduce: bytes of packed tensors, the same on all ranks. */
size_t hvd_gpu_launch_pack_bytes(const struct hvd_gpu_run *run);
int hvd_gpu_alltoall_count(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_alltoall_count_end(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_launch.c: submits the steps of run->job, with a trace. comm: NULL without
 * collectives. */
int hvd_gpu_launch_submit(struct hvd_gpu_run *run, enum hvd_gpu_queue queue,
                          struct hvd_gpu_comm *comm, struct hvd_error *err);

/* gpu_launch.c: takes memory for packed tensors before the training fills the device, if
 * there is none yet and that much is available. */
int hvd_gpu_launch_reserve(struct hvd_gpu_run *run, size_t bytes, struct hvd_error *err);

/* gpu_launch.c: finds memory for `rows` rows of a result: the caller's if it is large
 * enough, else device memory of the library. If the caller passed too little, this rank
 * still does the same as the others, and the entry fails once the device is done. *memory
 * is NULL for 0 rows in library memory. */
int hvd_gpu_launch_allocate(struct hvd_gpu_run *run, struct hvd_entry *entry,
                            int64_t rows, char **memory, struct hvd_error *err);

/* gpu_staging.c: collectives through host memory.
 *
 *   pipeline   creates run->pipeline for an allreduce; the others are for the rest
 *   fetch      submits the copies to the host
 *   run        starts the run on the host
 *   progress   advances the run
 *   return     submits the copies back */
int hvd_gpu_staging_pipeline(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_staging_fetch(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_staging_run(struct hvd_gpu_run *run, struct hvd_error *err);
int hvd_gpu_staging_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err);
int hvd_gpu_staging_return(struct hvd_gpu_run *run, struct hvd_error *err);

/* gpu_staging.c: forget is as in hvd_gpu_run_forget (results on the host may be leaked);
 * finish frees everything. */
void hvd_gpu_staging_forget(struct hvd_gpu_run *run, bool leaks);
void hvd_gpu_staging_finish(struct hvd_gpu_run *run);

#endif
