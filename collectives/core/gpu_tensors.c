/* SPDX-License-Identifier: Apache-2.0 */
/* Core's side of tensors on GPUs. */
#include "collectives/core/gpu_tensors.h"

#include "collectives/core/completion.h"
#include "collectives/core/job_state.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/gpu/gpu_trace.h"
#include "collectives/trace/timeline.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "pmix_boot/boot.h"

static void wake_driver(void *context)
{
    struct hvd_job *job = context;

    hvd_wakeup_notify(&job->wakeup);
}

static bool is_traced(void *context)
{
    const struct hvd_job *job = context;

    return hvd_timeline_is_on(job->timeline) || hvd_metrics_are_on(&job->metrics);
}

static void stop_gpu(void *self)
{
    struct hvd_job *job = self;

    job->gpu_tensors.has_stopped = hvd_gpu_stop(job->gpu);
}

static void close_gpu(void *self)
{
    struct hvd_job *job = self;

    hvd_gpu_destroy(job->gpu, job->gpu_tensors.has_stopped);
}

/* There are two sources, because the device must fail before the batches that run on it,
 * and its memory must outlive them. */
static const struct hvd_source memory_source = {
    .name = "memory of the GPU",
    .stop = stop_gpu,
    .close = close_gpu,
};

int hvd_gpu_tensors_open(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_job_settings *settings = &job->settings;
    const struct hvd_gpu_config config = {.boot = job->boot,
                                          .path = settings->gpu_path,
                                          .allreduce = settings->gpu_allreduce,
                                          .pack_below = settings->gpu_pack_below,
                                          .direct = settings->gpu_direct,
                                          .takes_windows = settings->nccl_windows,
                                          .one_kernel_bytes = settings->gpu_one_kernel,
                                          .wake = wake_driver,
                                          .is_traced = is_traced,
                                          .context = job};

    if (settings->gpu_allreduce_wrong != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s=%.64s is none of auto, hierarchical, flat",
                        HVD_ENV_GPU_ALLREDUCE, settings->gpu_allreduce_wrong);
    }
    hvd_loop_add(&job->loop, &memory_source, job, NULL);
    return hvd_gpu_create(&config, &job->gpu, err);
}

static void end_landed(void *context, struct hvd_entry *entry, int status,
                       const char *text)
{
    struct hvd_job *job = context;
    const struct hvd_gpu_trace *trace = hvd_gpu_trace_of(entry);
    struct hvd_error lacks_room;

    if (status == 0 && trace != NULL) {
        if (job->timeline != NULL) {
            hvd_timeline_device(job->timeline, entry, trace->since_ns, trace->spans,
                                trace->count);
        }
        hvd_metrics_note_landed(job, entry, trace->since_ns, trace->spans, trace->count);
    }
    if (status == 0 && hvd_entry_check_room(entry, &lacks_room) != 0) {
        status = lacks_room.status;
        text = lacks_room.text;
    }
    hvd_completion_finish(job, entry, status, text);
}

static int progress_device(struct hvd_job *job, bool *moved, struct hvd_error *err)
{
    int status = hvd_gpu_progress(job->gpu, end_landed, job, moved, err);

    if (status == 0) {
        status = hvd_p2p_source_progress_copies(job, moved, err);
    }
    if (*moved) {
        hvd_waiters_tell(&job->waiters); /* also the waiters of hvd_gpu_synchronize */
    }
    return status;
}

static unsigned progress_gpu(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    struct hvd_error err = {0};
    bool moved = false;
    int status = progress_device(job, &moved, &err);

    (void)now_ns;
    if (status == HVD_ERR_NET &&
        !hvd_failure_is_certain(&job->gpu_tensors.lost_ns, hvd_clock_ns())) {
        /* wait: the report of which rank died may be on its way */
        return moved ? HVD_SOURCE_MOVED : 0;
    }
    if (status != 0) {
        hvd_failure_end_job(job, job->boot->rank, status, err.text);
    }
    return moved || status != 0 ? HVD_SOURCE_MOVED : 0;
}

static int64_t gpu_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_job *job = self;

    return hvd_gpu_deadline(job->gpu, hvd_waiters_exist(&job->waiters), now_ns);
}

static bool has_drained(const void *self)
{
    const struct hvd_job *job = self;

    return hvd_gpu_is_idle(job->gpu);
}

/* Ends all launched entries. */
static void fail_gpu(void *self, int status, const char *text)
{
    struct hvd_job *job = self;

    hvd_gpu_fail(job->gpu, end_landed, job, status, text);
    hvd_waiters_tell(&job->waiters);
}

static const struct hvd_source gpu_source = {
    .name = "GPU",
    .progress = progress_gpu,
    .deadline = gpu_deadline,
    .has_drained = has_drained,
    .fail = fail_gpu,
};

void hvd_gpu_tensors_join(struct hvd_job *job)
{
    hvd_loop_add(&job->loop, &gpu_source, job, hvd_gpu_open_flag(job->gpu));
}
