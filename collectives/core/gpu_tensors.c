/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of tensors on GPUs. */
#include "collectives/core/gpu_tensors.h"

#include "collectives/core/completion.h"
#include "collectives/core/engine_state.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/gpu/gpu_trace.h"
#include "collectives/trace/timeline.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "pmix_boot/boot.h"

static void wake(void *context)
{
    struct hvd_engine *engine = context;

    hvd_wakeup_notify(&engine->wakeup);
}

static bool is_traced(void *context)
{
    const struct hvd_engine *engine = context;

    return hvd_timeline_is_on(engine->timeline);
}

static void stop_gpu(void *self)
{
    struct hvd_engine *engine = self;

    engine->gpu_tensors.has_stopped = hvd_gpu_stop(engine->gpu);
}

static void close_gpu(void *self)
{
    struct hvd_engine *engine = self;

    hvd_gpu_destroy(engine->gpu, engine->gpu_tensors.has_stopped);
}

/* Two, because the device fails before the batches that run on it, and its memory outlives them. */
static const struct hvd_source memory_source = {
    .name = "memory of the GPU",
    .stop = stop_gpu,
    .close = close_gpu,
};

int hvd_gpu_tensors_open(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_engine_settings *settings = &engine->settings;
    const struct hvd_gpu_config config = {.boot = engine->boot,
                                          .path = settings->gpu_path,
                                          .allreduce = settings->gpu_allreduce,
                                          .pack_below = settings->gpu_pack_below,
                                          .direct = settings->gpu_direct,
                                          .wake = wake,
                                          .is_traced = is_traced,
                                          .context = engine};

    if (settings->gpu_allreduce_wrong != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s=%.64s is none of auto, hierarchical, flat",
                        HVD_ENV_GPU_ALLREDUCE, settings->gpu_allreduce_wrong);
    }
    hvd_loop_add(&engine->loop, &memory_source, engine, NULL);
    return hvd_gpu_create(&config, &engine->gpu, err);
}

static void landed(void *context, struct hvd_entry *entry, int status, const char *text)
{
    struct hvd_engine *engine = context;
    const struct hvd_gpu_trace *trace = hvd_gpu_trace_of(entry);
    struct hvd_error lacks_room;

    if (status == 0 && trace != NULL) {
        hvd_timeline_device(engine->timeline, entry, trace->since_ns, trace->spans,
                            trace->count);
    }
    if (status == 0 && hvd_entry_check_room(entry, &lacks_room) != 0) {
        status = lacks_room.status;
        text = lacks_room.text;
    }
    hvd_completion_finish(engine, entry, status, text);
}

static int progress_device(struct hvd_engine *engine, bool *moved, struct hvd_error *err)
{
    int status = hvd_gpu_progress(engine->gpu, landed, engine, moved, err);

    if (status == 0) {
        status = hvd_messaging_progress_copies(engine, moved, err);
    }
    if (*moved) {
        hvd_waiters_tell(&engine->waiters); /* also those of hvd_gpu_synchronize */
    }
    return status;
}

static unsigned progress_gpu(void *self, int64_t now_ns)
{
    struct hvd_engine *engine = self;
    struct hvd_error err = {0};
    bool moved = false;
    int status = progress_device(engine, &moved, &err);

    (void)now_ns;
    if (status == HVD_ERR_NET &&
        !hvd_failure_is_certain(&engine->gpu_tensors.lost_ns, hvd_clock_ns())) {
        return moved ? HVD_SOURCE_MOVED : 0; /* the word of who died may be on its way */
    }
    if (status != 0) {
        hvd_failure_end_job(engine, engine->boot->rank, status, err.text);
    }
    return moved || status != 0 ? HVD_SOURCE_MOVED : 0;
}

static int64_t gpu_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_engine *engine = self;

    return hvd_gpu_deadline(engine->gpu, hvd_waiters_exist(&engine->waiters), now_ns);
}

static bool has_drained(const void *self)
{
    const struct hvd_engine *engine = self;

    return hvd_gpu_is_idle(engine->gpu);
}

/* Ends all that is launched. */
static void fail_gpu(void *self, int status, const char *text)
{
    struct hvd_engine *engine = self;

    hvd_gpu_fail(engine->gpu, landed, engine, status, text);
    hvd_waiters_tell(&engine->waiters);
}

static const struct hvd_source gpu_source = {
    .name = "GPU",
    .progress = progress_gpu,
    .deadline = gpu_deadline,
    .has_drained = has_drained,
    .fail = fail_gpu,
};

void hvd_gpu_tensors_join(struct hvd_engine *engine)
{
    hvd_loop_add(&engine->loop, &gpu_source, engine, hvd_gpu_open_flag(engine->gpu));
}
