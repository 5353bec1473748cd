/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of the autotuner. */
#include "collectives/core/tuning.h"

#include <math.h>

#include "collectives/agreement/agreement.h"
#include "collectives/core/engine_state.h"
#include "collectives/tuner/tuner.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

static void close_tuner(void *self)
{
    struct hvd_engine *engine = self;

    hvd_tuner_destroy(engine->tuner);
    engine->tuner = NULL;
}

static const struct hvd_source tuner_source = {
    .name = "tuner",
    .close = close_tuner,
};

int hvd_tuning_create(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_engine_settings *settings = &engine->settings;
    const struct hvd_tuner_options options = {
        .defaults = {.fusion_threshold = settings->fusion_threshold,
                     .cycle_time_ms = settings->cycle_time_ms},
        .has_fusion_threshold = settings->has_fusion_threshold,
        .has_cycle_time = settings->has_cycle_time,
        .warmup_samples = settings->autotune_warmup_samples,
        .steps_per_sample = settings->autotune_steps_per_sample,
        .max_trials = settings->autotune_max_samples,
        .log = settings->autotune_log,
    };

    if (!settings->autotune || engine->boot->rank != 0) {
        return 0;
    }
    hvd_loop_add(&engine->loop, &tuner_source, engine, NULL);
    return hvd_tuner_create(&options, &engine->tuner, err);
}

static int use_setting(struct hvd_engine *engine)
{
    const struct hvd_tuner_setting *setting = hvd_tuner_setting(engine->tuner);

    return hvd_agreement_tune(engine->negotiation.agreement, setting->fusion_threshold,
                              llround(setting->cycle_time_ms * 1e6));
}

static void end_when_over(struct hvd_engine *engine)
{
    const struct hvd_tuner_setting *setting = hvd_tuner_setting(engine->tuner);

    if (hvd_tuner_is_over(engine->tuner)) {
        hvd_log(HVD_LOG_INFO,
                "autotuner: fusion threshold %g MiB, cycle time %g ms from now on",
                (double)setting->fusion_threshold / (1024 * 1024),
                setting->cycle_time_ms);
        close_tuner(engine);
    }
}

int hvd_tuning_note(struct hvd_engine *engine, const struct hvd_batch *batch)
{
    bool has_changed = false;
    int64_t now_us;

    if (engine->tuner == NULL || batch->header.kind != HVD_KIND_ALLREDUCE ||
        batch->header.set != HVD_SET_GLOBAL) {
        return 0;
    }
    now_us = hvd_clock_ns() / 1000;
    for (int64_t i = 0; i < batch->header.count; i++) {
        const struct hvd_entry *entry = batch->entries[i];

        if (!entry->is_absent) {
            has_changed |= hvd_tuner_ended(engine->tuner, entry->proposal.name,
                                           hvd_proposal_bytes(&entry->proposal), now_us);
        }
    }
    if (has_changed) {
        int status = use_setting(engine);

        if (status != 0) {
            return status;
        }
    }
    end_when_over(engine);
    return 0;
}
