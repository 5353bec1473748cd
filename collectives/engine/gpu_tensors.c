/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of tensors on GPUs. */
#include "collectives/engine/gpu_tensors.h"

#include "collectives/engine/completion.h"
#include "collectives/engine/engine_state.h"
#include "collectives/engine/gpu_messages.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/gpu/gpu_trace.h"
#include "collectives/observe/timeline.h"
#include "gpu_binding/base/env.h"

static void wake(void *context)
{
    struct hvd_engine *engine = context;

    hvd_doorbells_ring(&engine->doorbells);
}

int hvd_gpu_tensors_open(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_engine_settings *settings = &engine->settings;
    const struct hvd_gpu_config config = {.boot = engine->boot,
                                          .path = settings->gpu_path,
                                          .allreduce = settings->gpu_allreduce,
                                          .pack_below = settings->gpu_pack_below,
                                          .direct = settings->gpu_direct,
                                          .wake = wake,
                                          .context = engine};

    if (settings->gpu_allreduce_wrong != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s=%.64s is none of auto, hierarchical, flat",
                        HVD_ENV_GPU_ALLREDUCE, settings->gpu_allreduce_wrong);
    }
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
    hvd_completion_land(engine, entry, status, text);
}

/* Those of hvd_gpu_synchronize: no request of theirs need have ended. */
static void tell_waiters(struct hvd_engine *engine)
{
    if (atomic_load(&engine->waiters.sleepers) > 0) {
        hvd_waiters_tell(&engine->waiters);
    }
}

int hvd_gpu_tensors_progress(struct hvd_engine *engine, bool *moved,
                             struct hvd_error *err)
{
    int status;

    engine->gpu->is_traced = hvd_timeline_is_on(engine->timeline);
    status = hvd_gpu_progress(engine->gpu, landed, engine, moved, err);
    status = status != 0 ? status : hvd_gpu_messages_progress(engine, moved, err);
    if (*moved) {
        tell_waiters(engine);
    }
    return status;
}

int64_t hvd_gpu_tensors_deadline(const struct hvd_engine *engine, int64_t now_ns)
{
    return hvd_gpu_deadline(engine->gpu, atomic_load(&engine->waiters.count) > 0, now_ns);
}

void hvd_gpu_tensors_fail(struct hvd_engine *engine, int status, const char *text)
{
    hvd_gpu_fail(engine->gpu, landed, engine, status, text);
    tell_waiters(engine);
}

int hvd_engine_use_gpu(struct hvd_engine *engine, int device, void *stream,
                       struct hvd_refcount **ready, struct hvd_error *err)
{
    struct hvd_float_env callers;
    int status;

    /* The launcher thread, made when the GPU is opened, inherits it, and rounds factors for NCCL. */
    hvd_float_env_enter(&callers);
    status = hvd_gpu_open(engine->gpu, device, err);
    hvd_float_env_leave(&callers);
    return status != 0 ? status : hvd_gpu_mark_input(engine->gpu, stream, ready, err);
}

bool hvd_engine_gpu_is_short(struct hvd_engine *engine)
{
    return hvd_gpu_is_short(engine->gpu);
}

void hvd_engine_gpu_freed(struct hvd_engine *engine)
{
    hvd_gpu_freed(engine->gpu);
}
