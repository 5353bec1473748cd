/* SPDX-License-Identifier: Apache-2.0 */
/* Core's part of the autotuner. */
#include "collectives/core/tuning.h"

#include <math.h>
#include <stdlib.h>

#include "collectives/agreement/agreement.h"
#include "collectives/core/job_state.h"
#include "collectives/request/batch.h"
#include "collectives/tuner/tuner.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

static void close_tuning(void *self)
{
    struct hvd_tuning *tuning = self;

    hvd_tuner_destroy(tuning->tuner);
    free(tuning);
}

static const struct hvd_source tuner_source = {
    .name = "tuner",
    .close = close_tuning,
};

int hvd_tuning_create(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_job_settings *settings = &job->settings;
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
    struct hvd_tuning *tuning;

    if (!settings->autotune || job->boot->rank != 0) {
        return 0;
    }
    tuning = calloc(1, sizeof(*tuning));
    if (tuning == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the autotuner");
    }
    tuning->agreement = hvd_negotiation_agreement(&job->negotiation);
    tuning->set = hvd_sets_global(&job->sets);
    job->tuning = tuning;
    hvd_loop_add(&job->loop, &tuner_source, tuning, NULL);
    return hvd_tuner_create(&options, &tuning->tuner, err);
}

static int use_setting(const struct hvd_tuning *tuning)
{
    const struct hvd_tuner_setting *setting = hvd_tuner_setting(tuning->tuner);

    return hvd_agreement_tune(tuning->agreement, setting->fusion_threshold,
                              llround(setting->cycle_time_ms * 1e6));
}

static void end_when_over(struct hvd_tuning *tuning)
{
    const struct hvd_tuner_setting *setting = hvd_tuner_setting(tuning->tuner);

    if (hvd_tuner_is_over(tuning->tuner)) {
        hvd_log(HVD_LOG_INFO,
                "autotuner: fusion threshold %g MiB, cycle time %g ms from now on",
                (double)setting->fusion_threshold / (1024 * 1024),
                setting->cycle_time_ms);
        hvd_tuner_destroy(tuning->tuner);
        tuning->tuner = NULL;
    }
}

int hvd_tuning_note(struct hvd_tuning *tuning, const struct hvd_batch *batch)
{
    bool has_changed = false;
    int64_t now_us;

    if (tuning->tuner == NULL || batch->header.kind != HVD_KIND_ALLREDUCE ||
        batch->set != tuning->set) {
        return 0;
    }
    now_us = hvd_clock_ns() / 1000;
    for (int64_t i = 0; i < batch->header.count; i++) {
        const struct hvd_entry *entry = batch->entries[i];

        if (!entry->is_zeros) {
            has_changed |=
                hvd_tuner_ended(tuning->tuner, entry->descriptor.name,
                                hvd_descriptor_bytes(&entry->descriptor), now_us);
        }
    }
    if (has_changed) {
        int status = use_setting(tuning);

        if (status != 0) {
            return status;
        }
    }
    end_when_over(tuning);
    return 0;
}
