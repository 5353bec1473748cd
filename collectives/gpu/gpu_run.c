/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch of GPU tensors until it is launched. */
#include "collectives/gpu/gpu_run.h"

#include <stdlib.h>

#include "collectives/run/team.h"
#include "collectives/run/teams.h"
#include "collectives/gpu/gpu_run_state.h"
#include "collectives/set/set.h"
#include "collectives/trace/timeline_words.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"

/* How long to wait, after NCCL fails because a rank died, for the message that names the
 * rank. */
static const int64_t word_ns = 1000000000;

static void poll_device(struct hvd_gpu_run *run, bool polls)
{
    run->gpu->waiting += (polls ? 1 : 0) - (run->is_polling ? 1 : 0);
    run->is_polling = polls;
}

/* --- phases --- */

/* Lets the next batch launch, when this one has launched its work or does not use
 * NCCL. */
static void pass_turn(struct hvd_gpu_run *run)
{
    if (run->has_turn) {
        run->has_turn = false;
        run->gpu->turn++;
    }
}

/* Lets the next batch launch, unless this one is a trial: then no other batch may run. */
static void pass_turn_unless_tried(struct hvd_gpu_run *run)
{
    if (!hvd_gpu_trial_runs(run)) {
        pass_turn(run);
    }
}

static int begin_launch(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int status = hvd_gpu_launch(run, err);

    run->phase = HVD_GPU_LAUNCH;
    pass_turn_unless_tried(run);
    return status;
}

/* Begins the path through host memory, without NCCL. */
static int begin_on_host(struct hvd_gpu_run *run, struct hvd_error *err)
{
    bool is_pipelined = run->batch->header.kind == HVD_KIND_ALLREDUCE;
    int status = is_pipelined ? hvd_gpu_staging_pipeline(run, err)
                              : hvd_gpu_staging_fetch(run, err);

    run->phase = is_pipelined ? HVD_GPU_PIPELINE : HVD_GPU_FETCH;
    poll_device(run, true);
    pass_turn(run);
    return status;
}

static int begin_pipeline(struct hvd_gpu_run *run, struct hvd_error *err)
{
    run->phase = HVD_GPU_PIPELINE;
    poll_device(run, true);
    return hvd_gpu_hierarchical_pipeline(run, err);
}

static int begin_by_nccl(struct hvd_gpu_run *run, struct hvd_error *err)
{
    if (hvd_gpu_is_hierarchical(run)) {
        return begin_pipeline(run, err);
    }
    if (hvd_gpu_inbox_wanted(run)) {
        run->phase = HVD_GPU_OPEN_INBOXES;
        poll_device(run, true);
        return hvd_gpu_inbox_begin(run, err);
    }
    if (hvd_gpu_inbox_fits(run)) {
        return begin_launch(run, err);
    }
    if (hvd_gpu_window_wanted(run)) {
        run->phase = HVD_GPU_REGISTER_WINDOW;
        poll_device(run, true);
        return hvd_gpu_window_begin(run, err);
    }
    if (hvd_gpu_packing_wanted(run)) {
        run->phase = HVD_GPU_MEASURE;
        poll_device(run, true);
        return hvd_gpu_packing_begin(run, err);
    }
    if (run->batch->header.kind == HVD_KIND_ALLTOALL) {
        run->phase = HVD_GPU_COUNT;
        return hvd_gpu_alltoall_count(run, err);
    }
    return begin_launch(run, err);
}

/* Begins the batch, once the set has had its rendezvous. */
static int begin_run(struct hvd_gpu_run *run, struct hvd_error *err)
{
    if (!hvd_gpu_launch_fits(run)) {
        return begin_on_host(run, err);
    }
    if (hvd_gpu_trial_wanted(run)) {
        run->phase = HVD_GPU_READY;
        poll_device(run, true);
        return hvd_gpu_trial_ready(run, err);
    }
    return begin_by_nccl(run, err);
}

static int begin_turn(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int status;

    if (run->batch->device_number != run->gpu->turn) {
        return HVD_INPROGRESS;
    }
    run->has_turn = true;
    status = hvd_gpu_open_default(run->gpu, err);
    if (status != 0) {
        return status;
    }
    run->set = run->batch->set->gpu;
    if (run->set != NULL) {
        return begin_run(run, err);
    }
    run->phase = HVD_GPU_RENDEZVOUS;
    return hvd_gpu_rendezvous_begin(run, err);
}

static int finish_rendezvous(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                             struct hvd_error *err)
{
    int status = hvd_gpu_host_gather_progress(&run->gather, work, moved, err);

    if (status != 0) {
        return status;
    }
    status = hvd_gpu_rendezvous_end(run, err);
    return status != 0 ? status : begin_run(run, err);
}

static int finish_count(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                        struct hvd_error *err)
{
    int status = hvd_gpu_host_gather_progress(&run->gather, work, moved, err);

    if (status != 0) {
        return status;
    }
    status = hvd_gpu_alltoall_count_end(run, err);
    return status != 0 ? status : begin_launch(run, err);
}

static int finish_inboxes(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                          struct hvd_error *err)
{
    int status = hvd_gpu_inbox_progress(run, work, moved, err);

    poll_device(run, status == HVD_INPROGRESS);
    return status != 0 ? status : begin_by_nccl(run, err);
}

static int finish_window(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                         struct hvd_error *err)
{
    int status = hvd_gpu_window_progress(run, work, moved, err);

    poll_device(run, status == HVD_INPROGRESS);
    if (status == 0) {
        hvd_gpu_trial_restart(run);
    }
    return status != 0 ? status : begin_by_nccl(run, err);
}

static int finish_measure(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                          struct hvd_error *err)
{
    int status = hvd_gpu_packing_progress(run, work, moved, err);

    poll_device(run, status == HVD_INPROGRESS);
    if (status == 0) {
        hvd_gpu_trial_restart(run); /* excludes the time of the measurement */
    }
    return status != 0 ? status : begin_by_nccl(run, err);
}

static int finish_ready(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int status = hvd_gpu_job_reached(&run->job, err);

    if (status != 0) {
        return status;
    }
    run->phase = HVD_GPU_LINE_UP;
    return hvd_gpu_trial_line_up(run, err);
}

static int finish_line_up(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                          struct hvd_error *err)
{
    int status = hvd_gpu_host_gather_progress(&run->gather, work, moved, err);

    if (status != 0) {
        return status;
    }
    hvd_gpu_trial_begin(run);
    return begin_by_nccl(run, err);
}

static int finish_fetch(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int status = hvd_gpu_job_reached(&run->job, err);

    if (status != 0) {
        return status;
    }
    poll_device(run, false);
    hvd_gpu_trace_collect(run->trace);
    hvd_gpu_job_end(run->gpu, &run->job);
    run->phase = HVD_GPU_ON_HOST;
    return hvd_gpu_staging_run(run, err);
}

static int finish_on_host(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                          struct hvd_error *err)
{
    int status = hvd_gpu_staging_progress(run, work, moved, err);

    if (status != 0) {
        return status;
    }
    hvd_gpu_trace_host(run->trace, hvd_timeline_transport(run->batch->header.kind,
                                                          run->team->layout->nodes > 1));
    run->phase = HVD_GPU_LAUNCH;
    return hvd_gpu_staging_return(run, err);
}

static int finish_pipeline(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                           struct hvd_error *err)
{
    int status = hvd_gpu_pipeline_progress(run->pipeline, work, moved, err);

    if (status == 0) {
        run->phase = HVD_GPU_LAUNCH;
        poll_device(run, false);
        pass_turn_unless_tried(run);
    }
    return status;
}

/* Returns 0 when the device has completed the trial. */
static int end_trial(struct hvd_gpu_run *run, const struct hvd_gpu_mark *end,
                     struct hvd_error *err)
{
    int status = run->gpu->pool->module->event_test(end->event, err);

    poll_device(run, true);
    if (status == 0) {
        hvd_gpu_trial_end(run);
    }
    return status;
}

/* Once all work is launched, gives the mark of its end to the entries. */
static int finish_launch(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_mark *end = run->job.mark;
    enum hvd_gpu_queue queue = run->job.work.queue;
    int status = run->pipeline != NULL
                     ? hvd_gpu_pipeline_end(run->pipeline, &end, &queue, err)
                     : hvd_gpu_job_launched(&run->job, err);

    if (status == 0 && hvd_gpu_trial_runs(run)) {
        status = end_trial(run, end, err);
    }
    if (status != 0) {
        return status;
    }
    for (int64_t i = 0; i < run->batch->header.count; i++) {
        run->batch->entries[i]->done = hvd_refcount_keep(&end->refcount);
    }
    end->trace = run->trace;
    run->trace = NULL;
    hvd_gpu_launched(run->gpu, queue, end);
    hvd_gpu_job_end(run->gpu, &run->job);
    return 0;
}

static int step_run(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                    struct hvd_error *err)
{
    switch (run->phase) {
    case HVD_GPU_AWAIT_TURN:
        return begin_turn(run, err);
    case HVD_GPU_RENDEZVOUS:
        return finish_rendezvous(run, work, moved, err);
    case HVD_GPU_COUNT:
        return finish_count(run, work, moved, err);
    case HVD_GPU_OPEN_INBOXES:
        return finish_inboxes(run, work, moved, err);
    case HVD_GPU_REGISTER_WINDOW:
        return finish_window(run, work, moved, err);
    case HVD_GPU_MEASURE:
        return finish_measure(run, work, moved, err);
    case HVD_GPU_READY:
        return finish_ready(run, err);
    case HVD_GPU_LINE_UP:
        return finish_line_up(run, work, moved, err);
    case HVD_GPU_FETCH:
        return finish_fetch(run, err);
    case HVD_GPU_ON_HOST:
        return finish_on_host(run, work, moved, err);
    case HVD_GPU_PIPELINE:
        return finish_pipeline(run, work, moved, err);
    default:
        return finish_launch(run, err);
    }
}

/* Delays a network failure: it usually means that a rank died, and a message that names
 * the rank will follow. */
static int hold_back(struct hvd_gpu_run *run, int status, struct hvd_error *err)
{
    bool is_death = status == HVD_ERR_NET || status == HVD_ERR_PEER;

    if (is_death && run->failed_ns == 0) {
        run->failed_ns = hvd_clock_ns();
        run->failure = *err;
        poll_device(run, true);
    }
    return run->failed_ns != 0 ? HVD_INPROGRESS : status;
}

int hvd_gpu_run_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                         struct hvd_error *err)
{
    enum hvd_gpu_phase phase;
    struct hvd_error cause = {0};
    int status;

    if (run->failed_ns != 0) {
        bool is_over = hvd_clock_ns() - run->failed_ns > word_ns;

        return is_over ? hvd_fail(err, run->failure.status, "%s", run->failure.text)
                       : HVD_INPROGRESS;
    }
    do {
        phase = run->phase;
        status = step_run(run, work, moved, &cause);
        *moved |= run->phase != phase;
    } while (status == 0 && run->phase != phase);
    *moved |= status == 0;
    if (status < 0) {
        hvd_fail(err, status, "rank %d on %s, tensor %.80s: %s",
                 run->gpu->config.boot->rank,
                 run->gpu->config.boot->peers[run->gpu->config.boot->rank].host,
                 run->batch->entries[0]->descriptor.name, cause.text);
        status = hold_back(run, status, err);
    }
    return status;
}

/* --- for the teams --- */

int hvd_gpu_run_create(struct hvd_gpu_runtime *gpu, struct hvd_team *team,
                       struct hvd_batch *batch, struct hvd_gpu_run **out,
                       struct hvd_error *err)
{
    struct hvd_gpu_run *run = calloc(1, sizeof(*run));

    if (run == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                        batch->entries[0]->descriptor.name);
    }
    run->gpu = gpu;
    run->team = team;
    run->batch = batch;
    run->count = batch->header.count;
    *out = run;
    return 0;
}

void hvd_gpu_run_forget(struct hvd_gpu_run *run, bool leaks)
{
    hvd_gpu_host_gather_forget(&run->gather, leaks);
    hvd_gpu_staging_forget(run, leaks);
}

void hvd_gpu_run_destroy(struct hvd_gpu_run *run)
{
    if (run == NULL) {
        return;
    }
    poll_device(run, false);
    pass_turn(run);
    if (run->gpu->is_stuck || hvd_gpu_job_is_held(&run->job) ||
        hvd_gpu_pipeline_is_held(run->pipeline)) {
        return; /* never freed: see hvd_gpu_stop */
    }
    hvd_gpu_host_gather_end(&run->gather);
    hvd_gpu_staging_finish(run);
    hvd_gpu_packing_finish(run);
    hvd_gpu_job_end(run->gpu, &run->job);
    hvd_gpu_pipeline_destroy(run->pipeline);
    hvd_gpu_trace_destroy(run->trace);
    free(run->counts);
    free(run->offer);
    free(run);
}

static uint64_t gpu_number(void *context)
{
    return hvd_gpu_number(context);
}

static int create_run(void *context, struct hvd_team *team, struct hvd_batch *batch,
                      void **out, struct hvd_error *err)
{
    struct hvd_gpu_run *run = NULL;
    int status = hvd_gpu_run_create(context, team, batch, &run, err);

    *out = run;
    return status;
}

static int progress_run(void *run, int64_t *work, bool *moved, struct hvd_error *err)
{
    return hvd_gpu_run_progress(run, work, moved, err);
}

static void forget_run(void *run, bool leaks)
{
    hvd_gpu_run_forget(run, leaks);
}

static void destroy_run(void *run)
{
    hvd_gpu_run_destroy(run);
}

static void forget_set(void *context, struct hvd_set *set)
{
    if (set->gpu != NULL) {
        hvd_gpu_set_destroy(context, set->gpu);
        set->gpu = NULL;
    }
}

const struct hvd_executor hvd_gpu_executor = {
    .number = gpu_number,
    .create = create_run,
    .progress = progress_run,
    .forget = forget_run,
    .destroy = destroy_run,
    .forget_set = forget_set,
};
