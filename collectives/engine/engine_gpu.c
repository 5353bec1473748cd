/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's side of GPU tensors: their GPU, and entries that end when it has come to
 * them. */
#include <string.h>

#include "collectives/engine/engine_state.h"
#include "collectives/gpu/gpu_trace.h"
#include "collectives/observe/ranges.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

static void wake(void *context)
{
    struct hvd_engine *engine = context;

    hvd_engine_ring(engine->wake);
    atomic_store(&engine->was_rung, true);
}

int hvd_engine_open_gpu(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_gpu_config config = {.boot = engine->boot,
                                          .path = engine->settings.gpu_path,
                                          .allreduce = engine->settings.gpu_allreduce,
                                          .registers = engine->settings.nccl_register,
                                          .pack_below = engine->settings.gpu_pack_below,
                                          .direct = engine->settings.gpu_direct,
                                          .tracks = engine->settings.nccl_streams,
                                          .wake = wake,
                                          .context = engine};

    if (engine->settings.gpu_allreduce_wrong != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s=%.64s is none of auto, hierarchical, flat",
                        HVD_ENV_GPU_ALLREDUCE, engine->settings.gpu_allreduce_wrong);
    }
    return hvd_gpu_create(&config, &engine->gpu, err);
}

static void tell_waiters(struct hvd_engine *engine)
{
    pthread_mutex_lock(&engine->mail);
    pthread_cond_broadcast(&engine->ended);
    pthread_mutex_unlock(&engine->mail);
}

void hvd_engine_launch_entry(struct hvd_engine *engine, struct hvd_entry *entry)
{
    hvd_gpu_park(entry);
    if (hvd_entry_launch(entry)) {
        tell_waiters(engine);
    }
}

void hvd_engine_land_entry(void *context, struct hvd_entry *entry, int status,
                           const char *text)
{
    struct hvd_engine *engine = context;
    const uint64_t range = entry->request->range;
    struct hvd_request *kept = entry->request->is_kept ? entry->request : NULL;
    const struct hvd_gpu_trace *trace = hvd_gpu_trace_of(entry);

    if (status == 0 && trace != NULL) {
        hvd_timeline_device(engine->timeline, entry, trace->since_ns, trace->spans,
                            trace->count);
    }
    if (hvd_entry_end(entry, status, text)) {
        hvd_range_end(HVD_RANGES_OPS, range);
        tell_waiters(engine);
        if (kept != NULL) {
            hvd_request_drop(kept);
        }
    }
}

bool hvd_engine_progress_gpu(struct hvd_engine *engine)
{
    struct hvd_error failure = {0};
    bool moved = false;
    int status;

    engine->gpu->is_traced = hvd_timeline_is_on(engine->timeline);
    status =
        hvd_gpu_progress(engine->gpu, hvd_engine_land_entry, engine, &moved, &failure);

    if (status == HVD_ERR_NET && engine->gpu_lost_ns == 0) {
        engine->gpu_lost_ns = hvd_clock_ns(); /* the word of who died may be on its way */
    }
    if (status != 0 && (status != HVD_ERR_NET ||
                        hvd_clock_ns() - engine->gpu_lost_ns > hvd_engine_word_ns)) {
        hvd_engine_fail(engine, engine->boot->rank, status, failure.text);
        return true;
    }
    return moved;
}

int hvd_engine_use_gpu(struct hvd_engine *engine, int device, void *stream,
                       struct hvd_held **ready, struct hvd_error *err)
{
    int status = hvd_gpu_open(engine->gpu, device, err);

    return status != 0 ? status : hvd_gpu_mark_input(engine->gpu, stream, ready, err);
}
