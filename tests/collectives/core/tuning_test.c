/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks are sent the settings that the autotuner finds. Linked with
 * --wrap=hvd_agreement_tune. */
#include <math.h>

#include "collectives/request/batch.h"
#include "collectives/core/job_state.h"
#include "collectives/core/tuning.h"
#include "collectives/tuner/tuner.h"
#include "pmix_boot/boot.h"
#include "tests/tap.h"

enum {
    MOST_BATCHES = 10000
};

static int told;
static int64_t told_bytes, told_cycle_ns;

int __wrap_hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                              int64_t cycle_ns);

int __wrap_hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                              int64_t cycle_ns)
{
    (void)agreement;
    told++;
    told_bytes = threshold;
    told_cycle_ns = cycle_ns;
    return 0;
}

/* Gives the tuner batches of one tensor, of this kind and process set. Returns whether it
 * then sends settings to all ranks. */
static bool tells(struct hvd_job *job, enum hvd_kind kind, struct hvd_set *set)
{
    struct hvd_entry entry = {.descriptor = {.kind = kind,
                                             .set = set->id,
                                             .dtype = HVD_FLOAT32,
                                             .ndim = 1,
                                             .shape = {1000},
                                             .name = "gradient"}};
    struct hvd_entry *entries[] = {&entry};
    const struct hvd_batch batch = {.header = {.kind = kind, .set = set->id, .count = 1},
                                    .set = set,
                                    .entries = entries};

    told = 0;
    for (int i = 0; i < MOST_BATCHES && told == 0; i++) {
        if (hvd_tuning_note(job->tuning, &batch) != 0) {
            return false;
        }
    }
    return told > 0;
}

static bool is_what_was_found(const struct hvd_job *job)
{
    const struct hvd_tuner_setting *setting = hvd_tuner_setting(job->tuning->tuner);

    tap_note("%lld bytes, %lld ns", (long long)told_bytes, (long long)told_cycle_ns);
    return told_bytes == setting->fusion_threshold &&
           told_cycle_ns == llround(setting->cycle_time_ms * 1e6);
}

int main(void)
{
    struct hvd_boot boot = {.rank = 1, .size = 2};
    struct hvd_set global = {.id = HVD_SET_GLOBAL}, other = {.id = 1};
    struct hvd_job job = {.boot = &boot,
                          .sets = {.global = &global},
                          .settings = {.autotune = true,
                                       .fusion_threshold = 128 << 20,
                                       .cycle_time_ms = 1,
                                       .autotune_steps_per_sample = 1,
                                       .autotune_max_samples = 20}};

    tap_ok(hvd_tuning_create(&job, NULL) == 0 && job.tuning == NULL, "only rank 0 tunes");
    boot.rank = 0;
    if (!tap_ok(hvd_tuning_create(&job, NULL) == 0 && job.tuning != NULL,
                "rank 0 tunes if the user wants to")) {
        return tap_done();
    }
    tap_ok(!tells(&job, HVD_KIND_BROADCAST, &global) &&
               !tells(&job, HVD_KIND_ALLREDUCE, &other),
           "only allreduces of the global set move the tuner");
    tap_ok(tells(&job, HVD_KIND_ALLREDUCE, &global) && is_what_was_found(&job),
           "all ranks are sent the threshold in bytes and the cycle time in nanoseconds");
    while (job.tuning->tuner != NULL && tells(&job, HVD_KIND_ALLREDUCE, &global)) {
    }
    tap_ok(job.tuning->tuner == NULL, "a tuner ends when it has found its setting");
    hvd_loop_close(&job.loop);
    return tap_done();
}
